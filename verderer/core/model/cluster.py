"""A cluster as a place for work: what it is, whether it is heard, and what is free there."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final

from verderer.core.model.resources import Resources

OFFLINE_AFTER_S: Final = 30.0
"""Silent for longer, a cluster gets no work and what it runs is unknown."""


class ClusterKind(StrEnum):
    KUBERNETES = "kubernetes"
    SLURM = "slurm"
    LOCAL = "local"


@dataclass(frozen=True, slots=True)
class Room:
    """One resource of a cluster, in milli-units or bytes."""

    allocatable: int
    """For the platform: what ready nodes have, less what others' work holds there."""
    largest: int
    """The same, of any one ready node."""
    reserved: int
    others: int = 0
    """Of ready nodes, taken by work that the platform does not run; not part of `allocatable`."""
    biggest: int = 0
    """Of any one ready node with all that others hold there; never below `largest`."""

    @property
    def whole(self) -> int:
        """What there would be if nobody else were there."""
        return self.allocatable + self.others

    @property
    def free(self) -> int:
        """Never negative: a dead node can leave less than what is promised."""
        return max(0, self.allocatable - self.reserved)


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """A cluster that work may be sent to."""

    id: int
    name: str
    """Its cluster_id."""
    kind: ClusterKind
    enabled: bool = True
    silent_s: float = 0.0
    """Seconds since its agent was last heard."""
    unfit: str = ""
    """The required check that does not pass there; empty: none."""
    rooms: Mapping[str, Room] = field(default_factory=dict)
    """By resource."""

    @property
    def online(self) -> bool:
        return self.enabled and not self.unfit and self.silent_s < OFFLINE_AFTER_S


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeReport:
    """One node as its agent sees it."""

    name: str
    ready: bool
    allocatable: Resources
    labels: Mapping[str, str]
    cpu_load: float | None
    """Busy share of all cores, 0 to 1; None: not measured."""
    memory_free: int | None
    """Bytes; None: not measured."""


class CheckLevel(StrEnum):
    """How a check of a cluster's surroundings ended."""

    PASS = "pass"
    WARN = "warn"  # works, and will hurt some day
    FAIL = "fail"
    UNKNOWN = "unknown"  # could not be measured: never a pass


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckReport:
    """One thing that has to be right beside a cluster, as its agent found it."""

    name: str
    level: CheckLevel
    required: bool
    """Without it no work can be done."""
    message: str
    remedy: str = ""


def unfit_by(checks: Sequence[CheckReport]) -> str:
    """The first required check that keeps work away; empty when none does.

    What could not be measured is not passed.
    """
    kept_out = (CheckLevel.FAIL, CheckLevel.UNKNOWN)
    return next((c.name for c in checks if c.required and c.level in kept_out), "")
