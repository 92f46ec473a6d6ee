"""From Slurm's nodes to the facts that the contract knows. What is unknown is never free."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from verderer.core.model.resources import CPU, MEMORY, Resources
from verderer.drivers.contract import NodeFacts
from verderer.drivers.slurm.options import SlurmOptions
from verderer.drivers.slurm.readers.gres import Gres
from verderer.drivers.slurm.readers.nodes import Partition, SlurmNode

STATE_LABEL: Final = "slurm.verderer.dev/state"
REASON_LABEL: Final = "slurm.verderer.dev/reason"
PARTITIONS_LABEL: Final = "slurm.verderer.dev/partitions"
FEATURE_LABEL: Final = "slurm.verderer.dev/feature."
FREE_LABEL: Final = "slurm.verderer.dev/free."
"""With the resource behind it, `/` as `_`: base units that no user's job has taken."""
ACCELERATOR_LABEL: Final = "verderer.dev/accelerator"
_MIB: Final = 1 << 20
_UNIT: Final = 1000
_LONGEST_REASON: Final = 200


def node_facts(
    nodes: Iterable[SlurmNode], partitions: Sequence[Partition], options: SlurmOptions
) -> list[NodeFacts]:
    """The nodes on which our jobs may land."""
    ours = usable(partitions, options)
    up = {partition.name for partition in ours if partition.up}
    names = {name for partition in ours for name in partition.nodes}
    return [_facts(node, up, options) for node in nodes if node.name in names]


def usable(partitions: Sequence[Partition], options: SlurmOptions) -> list[Partition]:
    """The partitions that jobs go to: the configured ones, all to choose from, or the default."""
    if options.partition:
        named = set(options.partition.split(","))
        return [partition for partition in partitions if partition.name in named]
    if "partition" in options.choices:
        return list(partitions)
    return [partition for partition in partitions if partition.default]


def _facts(node: SlurmNode, up: set[str], options: SlurmOptions) -> NodeFacts:
    allocatable = _allocatable(node, options)
    busy_share = None
    if node.load is not None and node.cpus:
        busy_share = min(1.0, node.load / node.cpus)
    free_mib = node.memory_free_mib
    reachable = bool(up & set(node.partitions))
    known = node.cpus is not None and node.memory_mib is not None
    return NodeFacts(
        name=node.name,
        ready=node.ready and reachable and known,
        allocatable=allocatable,
        labels=_labels(node, allocatable, options),
        cpu_load=busy_share,
        memory_free=free_mib * _MIB if free_mib is not None and free_mib >= 0 else None,
    )


def _allocatable(node: SlurmNode, options: SlurmOptions) -> Resources:
    found = {CPU: (node.cpus or 0) * _UNIT, MEMORY: (node.memory_mib or 0) * _MIB}
    return Resources.of(found | _devices(node.gres, options))


def _devices(gres: Iterable[Gres], options: SlurmOptions) -> dict[str, int]:
    found: dict[str, int] = {}
    for one in gres:
        resource = options.resource_of(one.name, one.type)
        if resource is not None:
            found[resource] = found.get(resource, 0) + one.count * _UNIT
    return found


def _labels(node: SlurmNode, allocatable: Resources, options: SlurmOptions) -> dict[str, str]:
    labels = {
        STATE_LABEL: node.shown_state,
        PARTITIONS_LABEL: ",".join(sorted(node.partitions)),
        **{FEATURE_LABEL + feature: "true" for feature in node.features},
        **{
            FREE_LABEL + resource.replace("/", "_"): str(amount)
            for resource, amount in _free(node, allocatable, options).items()
        },
    }
    if node.reason:
        labels[REASON_LABEL] = node.reason[:_LONGEST_REASON]
    models = sorted({one.type for one in node.gres if one.type and one.name == "gpu"})
    if models:
        labels[ACCELERATOR_LABEL] = ",".join(models)
    return labels


def _free(node: SlurmNode, allocatable: Resources, options: SlurmOptions) -> dict[str, int]:
    """What no job has, for resources of which that is known; nothing on a node that is not up."""
    used: dict[str, int | None] = {
        CPU: node.cpus_used * _UNIT if node.cpus_used is not None else None,
        MEMORY: node.memory_used_mib * _MIB if node.memory_used_mib is not None else None,
    }
    taken = _devices(node.gres_used, options) if node.gres_used is not None else None
    free = {}
    for resource, amount in allocatable.items():
        gone = used.get(resource) if resource in used else _of(taken, resource)
        if gone is not None:
            free[resource] = max(0, amount - gone) if node.ready else 0
    return free


def _of(taken: dict[str, int] | None, resource: str) -> int | None:
    return None if taken is None else taken.get(resource, 0)
