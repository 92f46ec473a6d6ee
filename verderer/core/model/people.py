"""People, what they log in with, and the projects that they work in."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from verderer.core.model.actor import Role


@dataclass(frozen=True, slots=True, kw_only=True)
class User:
    """Somebody who may log in while `active`."""

    id: int
    email: str
    name: str
    platform_admin: bool
    active: bool
    must_change: bool
    """The password is a one-time password that was not replaced yet."""
    language: str
    """BCP 47, or empty for whatever the browser asks for."""
    created_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Session:
    """One browser that is logged in."""

    id: str
    """The first 16 hexadecimal digits of the token's hash: names it, opens nothing."""
    created_at: datetime
    seen_at: datetime
    expires_at: datetime
    origin: str
    agent: str
    """What the browser calls itself."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ApiToken:
    """A program's credential; the token itself was shown once."""

    id: int
    name: str
    hint: str
    """The token's first characters."""
    read_only: bool
    created_at: datetime
    expires_at: datetime | None
    used_at: datetime | None
    revoked_at: datetime | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ProjectGroup:
    """A team: a role in it counts in each of its projects."""

    name: str
    title: str
    created_at: datetime
    projects: tuple[str, ...] = ()
    """Names of those that the reader may see."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Project:
    """The boundary that runs live in."""

    id: int
    name: str
    title: str
    group: str
    """The name of its project group."""
    created_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Member:
    """Somebody's role in one project."""

    user: int
    email: str
    name: str
    role: Role
    active: bool
