"""Who asks, and what they may see."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum


class Role(StrEnum):
    """What somebody is in a project."""

    MEMBER = "member"  # runs workloads
    ADMIN = "admin"  # also clusters, volumes and members


class ActorKind(StrEnum):
    USER = "user"
    AGENT = "agent"  # of one cluster
    STEP = "step"  # a running attempt, through its own token
    SYSTEM = "system"  # a loop of the control plane


@dataclass(frozen=True, slots=True)
class Scope:
    """The projects whose rows a reader may see. Views take one first, so nobody can forget it."""

    everything: bool = False
    projects: frozenset[int] = frozenset()

    def sees(self, project: int) -> bool:
        return self.everything or project in self.projects


@dataclass(frozen=True, slots=True, kw_only=True)
class Actor:
    """An authenticated caller. Made only where a credential was checked, or by a loop."""

    kind: ActorKind
    id: int = 0
    """Users: `users.id`. Agents: `clusters.id`. Steps: the run's id."""
    name: str
    """E-mail address, cluster_id, attempt name, or name of the loop."""
    platform_admin: bool = False
    roles: Mapping[int, Role] = field(default_factory=dict)
    """By project id."""
    read_only: bool = False
    """The credential may only read."""
    must_change: bool = False
    """Logged in with a one-time password that still has to be replaced."""
    origin: str = ""
    """Address or program that the request came from; goes into the audit."""
    language: str = ""

    def __str__(self) -> str:
        return f"{self.kind}:{self.name}"

    @property
    def scope(self) -> Scope:
        return Scope(self.platform_admin, frozenset(self.roles))
