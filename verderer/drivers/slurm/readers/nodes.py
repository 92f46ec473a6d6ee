"""Nodes and partitions: what `scontrol show nodes` and `sinfo` say about them."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from verderer.drivers.slurm.readers import hostlists
from verderer.drivers.slurm.readers.gres import Gres, read_gres
from verderer.drivers.slurm.readers.values import (
    Unreadable,
    amount,
    document,
    fields,
    number,
    rows,
    states,
    text_of,
    words,
)

_OTHER_NAMES: Final = {
    "ALLOC": "ALLOCATED",
    "MIX": "MIXED",
    "MAINT": "MAINTENANCE",
    "NO_RESPOND": "NOT_RESPONDING",
    "INVAL": "INVALID_REG",
    "FAILING": "FAIL",
    "REBOOT": "REBOOT_REQUESTED",
    "UNK": "UNKNOWN",
}
_NOT_FOR_WORK: Final = frozenset(
    {
        *("DOWN", "ERROR", "FUTURE", "UNKNOWN", "DRAIN", "DRAINED", "DRAINING", "FAIL"),
        *("NOT_RESPONDING", "MAINTENANCE", "REBOOT_REQUESTED", "REBOOT_ISSUED", "INVALID_REG"),
        *("POWERING_DOWN", "POWER_DOWN", "POWER_DRAIN", "RESERVED", "BLOCKED"),
    }
)
_AT_WORK: Final = frozenset({"IDLE", "ALLOCATED", "MIXED", "COMPLETING", "PLANNED"})


@dataclass(frozen=True, slots=True, kw_only=True)
class SlurmNode:
    """One node as Slurm describes it; None is unknown."""

    name: str
    state: str
    flags: frozenset[str]
    cpus: int | None = None
    cpus_used: int | None = None
    memory_mib: int | None = None
    """What Slurm hands out, less what it keeps for the system."""
    memory_used_mib: int | None = None
    """Handed out to jobs, which need not use it."""
    memory_free_mib: int | None = None
    """As the node's kernel says."""
    load: float | None = None
    gres: tuple[Gres, ...] = ()
    gres_used: tuple[Gres, ...] | None = None
    features: tuple[str, ...] = ()
    partitions: tuple[str, ...] = ()
    reason: str = ""
    version: str = ""

    @property
    def shown_state(self) -> str:
        """`IDLE+DRAIN`."""
        return "+".join([self.state, *sorted(self.flags)])

    @property
    def drained(self) -> bool:
        """Whether it is, or is being, taken out of service."""
        return bool({"DRAIN", "DRAINED", "DRAINING"} & {self.state, *self.flags})

    @property
    def ready(self) -> bool:
        """Whether Slurm would start a job on it; one that it has to switch on counts as well."""
        return self.state in _AT_WORK and not _NOT_FOR_WORK & self.flags


@dataclass(frozen=True, slots=True, kw_only=True)
class Partition:
    """One partition as Slurm describes it."""

    name: str
    default: bool
    up: bool
    nodes: tuple[str, ...]


def read_nodes_text(text: str) -> tuple[SlurmNode, ...]:
    """Nodes of `scontrol --oneliner --details show nodes`, any version.

    Raises:
        Unreadable: a line names no node.
    """
    found = [fields(line) for line in text.splitlines() if line.strip()]
    if any(not one.get("NodeName") for one in found):
        if "No nodes in the system" in text:
            return ()
        raise Unreadable(f"scontrol does not show a node: {text[:200]!r}")
    return tuple(_from_fields(one) for one in found)


def read_nodes_json(text: str) -> tuple[SlurmNode, ...]:
    """Nodes of `scontrol show nodes --json`, or of `sinfo --json` before 23.02.

    Raises:
        Unreadable: it is not such a document, or a node in it has no name.
    """
    found = document(text)
    if not isinstance(found.get("nodes"), list):
        raise Unreadable("Slurm's JSON has no nodes")
    return tuple(_from_json(one) for one in rows(found, "nodes"))


def read_partitions(text: str) -> tuple[Partition, ...]:
    """Partitions of `scontrol --oneliner show partition`, any version.

    Raises:
        Unreadable: a line names no partition, or its nodes cannot be read.
    """
    partitions = []
    for line in text.splitlines():
        if not line.strip() or "No partitions in the system" in line:
            continue
        found = fields(line)
        if not found.get("PartitionName"):
            raise Unreadable(f"scontrol does not show a partition: {line[:200]!r}")
        partitions.append(
            Partition(
                name=found["PartitionName"],
                default=found.get("Default") == "YES",
                up=found.get("State") == "UP",
                nodes=hostlists.expand(found.get("Nodes", "")),
            )
        )
    return tuple(partitions)


def _from_fields(found: Mapping[str, str]) -> SlurmNode:
    state, flags = _state(found.get("State"))
    used = found.get("GresUsed")
    return SlurmNode(
        name=found["NodeName"],
        state=state,
        flags=flags,
        cpus=_first(number(found.get("CPUEfctv")), number(found.get("CPUTot"))),
        cpus_used=number(found.get("CPUAlloc")),
        memory_mib=_less(number(found.get("RealMemory")), number(found.get("MemSpecLimit"))),
        memory_used_mib=number(found.get("AllocMem")),
        memory_free_mib=number(found.get("FreeMem")),
        load=amount(text_of(found.get("CPULoad"))),
        gres=read_gres(found.get("Gres")),
        gres_used=read_gres(used) if used is not None else None,
        features=words(_first(found.get("ActiveFeatures"), found.get("AvailableFeatures"))),
        partitions=words(found.get("Partitions")),
        reason=re.sub(r" \[[^\[\]]*@[^\[\]]*\]$", "", text_of(found.get("Reason"))),
        version=text_of(found.get("Version")),
    )


def _from_json(found: Mapping[str, Any]) -> SlurmNode:
    name = text_of(found.get("name"))
    if not name:
        raise Unreadable("a node in Slurm's JSON has no name")
    state, flags = _state(found.get("state"), found.get("state_flags"))
    load = number(found.get("cpu_load"))
    used = found.get("gres_used")
    return SlurmNode(
        name=name,
        state=state,
        flags=flags,
        cpus=_first(number(found.get("effective_cpus")), number(found.get("cpus"))),
        cpus_used=number(found.get("alloc_cpus")),
        memory_mib=_less(number(found.get("real_memory")), number(found.get("specialized_memory"))),
        memory_used_mib=number(found.get("alloc_memory")),
        memory_free_mib=number(_first(found.get("free_mem"), found.get("free_memory"))),
        load=load / 100 if load is not None and load >= 0 else None,
        gres=read_gres(found.get("gres")),
        gres_used=read_gres(used) if isinstance(used, str) else None,
        features=words(_first(found.get("active_features"), found.get("features"))),
        partitions=words(found.get("partitions")),
        reason=text_of(found.get("reason")),
        version=text_of(_first(found.get("version"), found.get("slurmd_version"))),
    )


def _state(*values: object) -> tuple[str, frozenset[str]]:
    base, flags = states(*values)
    named = frozenset(_OTHER_NAMES.get(flag, flag) for flag in flags)
    return _OTHER_NAMES.get(base, base), named


def _first(*values: Any) -> Any:
    return next((value for value in values if value is not None), None)


def _less(whole: int | None, kept: int | None) -> int | None:
    return None if whole is None else max(0, whole - (kept or 0))
