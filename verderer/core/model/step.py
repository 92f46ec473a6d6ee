"""A step: a node of a run's graph. What is happening to it right now is its attempt's state."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from types import MappingProxyType

from verderer.core.errors import IllegalMove


class StepState(StrEnum):
    """Where a step stands; while `active`, its newest attempt says the rest."""

    BLOCKED = "blocked"  # waits for steps that it needs
    READY = "ready"  # waits for a place to run
    ACTIVE = "active"  # an attempt exists that has not ended
    SUCCEEDED = "succeeded"
    FAILED = "failed"
    CANCELLED = "cancelled"
    SKIPPED = "skipped"  # its `when` was false, or something it needs did not succeed

    @property
    def over(self) -> bool:
        return self in STEP_OVER


STEP_OVER = frozenset(
    {StepState.SUCCEEDED, StepState.FAILED, StepState.CANCELLED, StepState.SKIPPED}
)

STEP_MOVES: Mapping[StepState, frozenset[StepState]] = MappingProxyType(
    {
        StepState.BLOCKED: frozenset({StepState.READY, StepState.SKIPPED, StepState.CANCELLED}),
        StepState.READY: frozenset({StepState.ACTIVE, StepState.CANCELLED}),
        StepState.ACTIVE: frozenset(
            {
                StepState.SUCCEEDED,
                StepState.FAILED,
                StepState.CANCELLED,
                StepState.READY,  # another attempt is allowed
            }
        ),
        # Retrying a run opens its steps again.
        StepState.SUCCEEDED: frozenset({StepState.BLOCKED, StepState.READY}),
        StepState.FAILED: frozenset({StepState.BLOCKED, StepState.READY}),
        StepState.CANCELLED: frozenset({StepState.BLOCKED, StepState.READY}),
        StepState.SKIPPED: frozenset({StepState.BLOCKED, StepState.READY}),
    }
)


def check_step_move(before: StepState, after: StepState) -> StepState:
    """Return `after`, or raise `IllegalMove` if no edge leads there."""
    if after not in STEP_MOVES[before]:
        raise IllegalMove(f"a step cannot go from {before} to {after}")
    return after
