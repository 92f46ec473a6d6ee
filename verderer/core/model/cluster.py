"""A cluster as a place for work: what it is, whether it is heard, and what is free there."""

from __future__ import annotations

from collections.abc import Mapping
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
    largest: int
    """Of any one ready node."""
    reserved: int

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
    rooms: Mapping[str, Room] = field(default_factory=dict)
    """By resource."""

    @property
    def online(self) -> bool:
        return self.enabled and self.silent_s < OFFLINE_AFTER_S


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
