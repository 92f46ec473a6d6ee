"""Takes nodes out of service and puts them back, and never undoes what somebody else has done."""

from __future__ import annotations

import re
from typing import Final

from verderer.core.errors import Conflict, Invalid
from verderer.drivers.slurm.commands import Slurm
from verderer.drivers.slurm.readers.nodes import SlurmNode

PREFIX: Final = "verderer:"
"""Begins the reason of every node that we have drained: the only mark of ownership there is."""
_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,252}")
_UNSEEN: Final = re.compile(r"[^ -~]+")
_LONGEST: Final = 200


async def cordon(slurm: Slurm, node: str, reason: str) -> None:
    """Drain the node in Slurm's sense: what runs goes on, nothing new begins. Idempotent.

    A node that somebody else has drained stays theirs.

    Raises:
        Invalid: no name of a node.
        Refusal: there is no such node, or the agent's user may not drain it.
        Fault: Slurm does not answer.
    """
    found = await slurm.node(_checked(node))
    if found.drained:
        return
    words = " ".join(_UNSEEN.sub(" ", reason).split())[:_LONGEST]
    await slurm.update_node(node, "drain", f"{PREFIX}{words or 'out of service'}")


async def uncordon(slurm: Slurm, node: str) -> None:
    """Put back a node that `cordon` took out; one that is in service is left alone.

    Raises:
        Conflict: somebody else has drained it.
        Refusal: as `cordon`.
        Fault: as `cordon`.
    """
    found = await slurm.node(_checked(node))
    if not found.drained:
        return
    if not found.reason.startswith(PREFIX):
        raise Conflict(
            f"{node} was not drained by us: {found.reason or 'without a reason'}",
            hint="whoever drained it puts it back with `scontrol update state=resume`",
            code="not_our_drain",
        )
    # `undrain` clears the drain and nothing else: a node that is down stays down.
    await slurm.update_node(node, "undrain")


async def state_of(slurm: Slurm, node: str) -> SlurmNode:
    """The node as it is now. Raises as `cordon`."""
    return await slurm.node(_checked(node))


def is_empty(node: SlurmNode) -> bool:
    """Whether surely nobody's work is left on it."""
    return node.state in ("IDLE", "DOWN", "DRAINED") and not (
        {"COMPLETING", "NOT_RESPONDING"} & node.flags
    )


def _checked(node: str) -> str:
    if not _NAME.fullmatch(node):
        raise Invalid(f"{node[:80]!r} names no node")
    return node
