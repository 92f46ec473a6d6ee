"""An attempt: one launch of a step on one cluster, never started twice."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from types import MappingProxyType


class AttemptState(StrEnum):
    """What the cluster's agent last proved about an attempt."""

    ASSIGNED = "assigned"  # handed to a cluster; its agent has not confirmed yet
    STARTING = "starting"  # the agent holds the order: fetching inputs, making a process or a pod
    RUNNING = "running"
    STOPPING = "stopping"  # asked to end; kept until the agent confirms
    SUCCEEDED = "succeeded"
    FAILED = "failed"
    CANCELLED = "cancelled"
    LOST = "lost"  # the agent proved that it is gone and nobody saw it end

    @property
    def over(self) -> bool:
        return self in ATTEMPT_OVER


ATTEMPT_OVER = frozenset(
    {AttemptState.SUCCEEDED, AttemptState.FAILED, AttemptState.CANCELLED, AttemptState.LOST}
)

_ENDS = frozenset(ATTEMPT_OVER)

ATTEMPT_MOVES: Mapping[AttemptState, frozenset[AttemptState]] = MappingProxyType(
    {
        AttemptState.ASSIGNED: frozenset(
            {AttemptState.STARTING, AttemptState.RUNNING, AttemptState.STOPPING} | _ENDS
        ),
        AttemptState.STARTING: frozenset({AttemptState.RUNNING, AttemptState.STOPPING} | _ENDS),
        AttemptState.RUNNING: frozenset({AttemptState.STOPPING} | _ENDS),
        AttemptState.STOPPING: _ENDS,
        AttemptState.SUCCEEDED: frozenset(),
        AttemptState.FAILED: frozenset(),
        AttemptState.CANCELLED: frozenset(),
        AttemptState.LOST: frozenset(),
    }
)


class EndCause(StrEnum):
    """Why an attempt ended: the things that people must be able to tell apart."""

    EXIT = "exit"  # the program returned `exit_code`
    SIGNAL = "signal"  # something outside the platform killed it with `signal`
    OOM = "oom"  # its own memory limit was reached
    TIMEOUT = "timeout"  # the step's `timeout` passed
    CANCELLED = "cancelled"  # stopped because somebody asked
    LOST = "lost"  # gone, and nobody saw how it ended
    START = "start"  # it could not be started: command not found, input missing, image refused
    OUTPUT = "output"  # the program succeeded, a declared output was missing or not stored


@dataclass(frozen=True, slots=True)
class AttemptKey:
    """Names an attempt everywhere: `run` is 64 bits, `step` the index in the run, from 0."""

    run: int
    step: int
    number: int
    """1 for the first attempt."""

    def __str__(self) -> str:
        """The deterministic name on a cluster; valid as a DNS-1123 label."""
        return f"v{self.run:016x}-{self.step}-{self.number}"

    @classmethod
    def parse(cls, text: str) -> AttemptKey:
        """Read what `str` wrote.

        Raises:
            ValueError: it is not such a name.
        """
        head, step, number = text.split("-")
        if not text.startswith("v") or len(head) != 17:
            raise ValueError(f"not an attempt: {text!r}")
        key = cls(int(head[1:], 16), int(step), int(number))
        if str(key) != text:
            raise ValueError(f"not an attempt: {text!r}")
        return key


@dataclass(frozen=True, slots=True, kw_only=True)
class End:
    """How an attempt ended."""

    cause: EndCause
    exit_code: int | None = None
    signal: int | None = None
    message: str = ""
    """One sentence for a person; never longer than 2,000 characters."""

    @property
    def state(self) -> AttemptState:
        if self.cause is EndCause.EXIT and self.exit_code == 0:
            return AttemptState.SUCCEEDED
        if self.cause is EndCause.CANCELLED:
            return AttemptState.CANCELLED
        if self.cause is EndCause.LOST:
            return AttemptState.LOST
        return AttemptState.FAILED
