"""A run: one submission of a pipeline."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from types import MappingProxyType

from verderer.core.errors import IllegalMove


class RunState(StrEnum):
    """Where a run stands. Nothing else on the row says so."""

    QUEUED = "queued"  # accepted and committed; no step has been handed to a cluster yet
    RUNNING = "running"  # at least one step was handed out
    CANCELLING = "cancelling"  # a person asked to stop it; some attempts have not confirmed yet
    SUCCEEDED = "succeeded"
    FAILED = "failed"
    CANCELLED = "cancelled"

    @property
    def over(self) -> bool:
        return self in RUN_OVER


RUN_OVER = frozenset({RunState.SUCCEEDED, RunState.FAILED, RunState.CANCELLED})

RUN_MOVES: Mapping[RunState, frozenset[RunState]] = MappingProxyType(
    {
        RunState.QUEUED: frozenset(
            {
                RunState.RUNNING,
                RunState.CANCELLING,
                RunState.SUCCEEDED,  # every step was skipped
                RunState.FAILED,
                RunState.CANCELLED,
            }
        ),
        RunState.RUNNING: frozenset({RunState.CANCELLING, RunState.SUCCEEDED, RunState.FAILED}),
        RunState.CANCELLING: frozenset({RunState.CANCELLED}),
        # A person may retry what is over; the attempts of before stay as they ended.
        RunState.SUCCEEDED: frozenset({RunState.QUEUED}),
        RunState.FAILED: frozenset({RunState.QUEUED}),
        RunState.CANCELLED: frozenset({RunState.QUEUED}),
    }
)


def check_run_move(before: RunState, after: RunState) -> RunState:
    """Return `after`, or raise `IllegalMove` if no edge leads there."""
    if after not in RUN_MOVES[before]:
        raise IllegalMove(f"a run cannot go from {before} to {after}")
    return after
