"""What the supervisor is told about a process, and how it can tell that it is ready."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TypeAlias

REFUSED = 78
"""Exit code of a role that cannot work as it is configured: trying again would not help.
(`EX_CONFIG` of sysexits.h)"""

READY_VARIABLE = "VERDERER_READY_FD"
"""Environment variable with the file descriptor on which a role says that it is ready."""

GO_VARIABLE = "VERDERER_WAIT_FOR_GO"
"""Environment variable that is there when a role, once its modules are imported, must wait for a
line on its standard input before it begins."""

COLOURS_VARIABLE = "VERDERER_LOG_COLOURS"
"""Environment variable that is there when a role's text ends on a terminal with colours."""


@dataclass(frozen=True, slots=True)
class Exits:
    """Ready when it has ended with code 0: a role that does one thing and is not kept alive."""


@dataclass(frozen=True, slots=True)
class Alive:
    """Ready when it has lived this long."""

    for_s: float = 0.3


@dataclass(frozen=True, slots=True)
class Says:
    """Ready when it has written a line to the descriptor that `READY_VARIABLE` names."""


@dataclass(frozen=True, slots=True)
class Answers:
    """Ready when this plain HTTP address answers 200."""

    url: str


Readiness: TypeAlias = Exits | Alive | Says | Answers


@dataclass(frozen=True, slots=True, kw_only=True)
class RoleSpec:
    """One process to run."""

    name: str
    argv: tuple[str, ...]
    ready: Readiness = Alive()
    environment: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))
    """The whole environment of the process, not an addition to ours."""
    early: bool = False
    """Start the process with the first stage, so that it imports its modules while others
    become ready; it begins its work when its own stage is reached (see `GO_VARIABLE`)."""
    stop_within_s: float = 10.0
    """From SIGTERM to SIGKILL."""
