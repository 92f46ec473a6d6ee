"""Resource groups: clusters with a quota, a rule about labels and an order of the queue."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import IntEnum, StrEnum
from typing import Final, NamedTuple

EVERYTHING: Final = 1
"""The id of the group that every installation starts with: all clusters, no quota."""


class Order(StrEnum):
    """Whose step of those that wait in one resource group is looked at first."""

    FAIR = "fair"  # of the project that has the least of the group
    FIFO = "fifo"  # that waits the longest


class GrantKind(StrEnum):
    """How a project group came to a resource group."""

    DEFAULT = "default"  # where its runs go unless they name another
    OPTIONAL = "optional"  # for runs that name it, or that its label rule picks


class Priority(IntEnum):
    """How urgent a run is among those of its resource group, in points."""

    LOW = -10
    NORMAL = 0
    HIGH = 10

    @property
    def word(self) -> str:
        """As documents write it."""
        return self.name.lower()


AGEING_S: Final = 360.0
"""A step gains a point for so long a wait: after an hour a low one goes level with a normal one."""
PATIENCE_S: Final = 300.0
"""What has waited so long, and longest of its group, keeps what comes free until it fits."""


def points(priority: int, waited_s: float) -> int:
    """What orders waiting steps: the priority, and how long they have waited."""
    return priority + int(max(0.0, waited_s) // AGEING_S)


class Account(NamedTuple):
    """What a resource group may use of one resource at a time; milli-units or bytes."""

    quota: int | None
    """None: as much as its clusters have."""
    reserved: int

    @property
    def left(self) -> int | None:
        return None if self.quota is None else max(0, self.quota - self.reserved)


class Holding(NamedTuple):
    """What a project has of one resource of a group; milli-units or bytes."""

    reserved: int
    recent: int
    """Its mean over the last hours, older ones counting less."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ground:
    """A resource group as placement sees it."""

    id: int
    name: str
    clusters: frozenset[int] | None = None
    """None: every cluster there is."""
    order: Order = Order.FAIR
    accounts: Mapping[str, Account] = field(default_factory=dict)
    """By resource; what is not named has no quota."""
    holdings: Mapping[int, Mapping[str, Holding]] = field(default_factory=dict)
    """By project and resource; a project that holds and held nothing may be left out."""

    def has(self, cluster: int) -> bool:
        return self.clusters is None or cluster in self.clusters


ANYWHERE: Final = Ground(id=EVERYTHING, name="everything", order=Order.FIFO)
"""No bounds at all."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Bounds:
    """Within what placement stays."""

    grounds: Mapping[int, Ground]
    """By id; a group that is not here gets nothing."""
    granted: Mapping[int, frozenset[int]]
    """By project, the groups that it may use at this moment."""

    def ground(self, project: int, group: int) -> Ground | None:
        """The group's ground; None when the project may not use it now."""
        if group not in self.granted.get(project, ()):
            return None
        return self.grounds.get(group)

    def name(self, group: int) -> str:
        """What people call a group; empty when it is gone."""
        found = self.grounds.get(group)
        return "" if found is None else found.name
