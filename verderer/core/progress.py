"""What follows from the end of an attempt: another one, the end of its step, its successors."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from verderer.core.ending import PLAIN
from verderer.core.model.attempt import End, EndCause
from verderer.core.model.run import RunState
from verderer.core.model.step import StepState
from verderer.core.pipeline.expressions import evaluate_when
from verderer.core.pipeline.spec import DEFAULT_WHEN, OnClusterLost, StepSpec

MAX_LAUNCHES: Final = 100
"""From this attempt on a lost one counts as a failure: something about the step itself kills it."""
_NEVER_RETRIED: Final = frozenset({EndCause.CANCELLED})


@dataclass(frozen=True, slots=True)
class Again:
    """Another attempt follows, not earlier than `wait_s` seconds from now."""

    wait_s: int
    failed: bool = True
    """Whether the attempt before it counts as a failure."""


@dataclass(frozen=True, slots=True)
class Over:
    """The step has ended."""

    state: StepState
    note: str = ""


@dataclass(frozen=True, slots=True)
class Release:
    """Everything that a step needed is over and its condition holds: it may be placed."""


def after_attempt(
    end: End, spec: StepSpec, *, number: int, failures: int, run_state: RunState
) -> Again | Over:
    """Decide what the end of attempt `number` means for its step.

    `failures` counts the attempts that failed before this one since the run was last (re)started.
    A run that is being cancelled starts nothing more. What a lost attempt did before it vanished is
    unknown, so it counts as a failure and only `retries` allows another, unless the step says that
    it may be run anew.
    """
    if end.state.value == "succeeded":
        return Over(StepState.SUCCEEDED)
    if end.cause in _NEVER_RETRIED or run_state is RunState.CANCELLING:
        return Over(StepState.CANCELLED, "cancelled" if end.cause in _NEVER_RETRIED else "")
    rerun = end.cause is EndCause.LOST and spec.on_cluster_lost is OnClusterLost.RERUN
    if rerun and number < MAX_LAUNCHES:
        return Again(spec.backoff_s, failed=False)
    if failures < spec.retries:
        return Again(spec.wait_before(failures + 2))
    return Over(StepState.FAILED, describe(end))


def describe(end: End) -> str:
    """Say in one English sentence how an attempt ended; pages translate by `cause` instead."""
    match end.cause:
        case EndCause.EXIT:
            text = f"exited with code {end.exit_code}"
        case EndCause.SIGNAL:
            text = f"killed by signal {end.signal}"
        case plain:
            text = PLAIN[plain]
    return f"{text}: {end.message}" if end.message else text


def after_needs(
    spec: StepSpec,
    *,
    parameters: Mapping[str, str],
    matrix: Mapping[str, str],
    needs: Mapping[str, StepState],
) -> Release | Over:
    """Decide what becomes of a step when the last of its `needs` (by name) is over."""
    if spec.when == DEFAULT_WHEN:
        holds = all(state is StepState.SUCCEEDED for state in needs.values())
    else:
        states = {name: state.value for name, state in needs.items()}
        holds = evaluate_when(spec.when, parameters=parameters, matrix=matrix, states=states)
    if holds:
        return Release()
    blamed = next((n for n, state in needs.items() if state is not StepState.SUCCEEDED), None)
    if blamed is not None:
        return Over(StepState.SKIPPED, f"{blamed} {needs[blamed].value}")
    return Over(StepState.SKIPPED, f"when: {spec.when}")


def run_end(state: RunState, *, opened: int, failed: int) -> RunState | None:
    """The final state of a run, or None while `opened` of its steps are not over.

    `failed` counts steps whose last attempt did not succeed; skipped steps fail nothing.
    """
    if opened:
        return None
    if state is RunState.CANCELLING:
        return RunState.CANCELLED
    return RunState.FAILED if failed else RunState.SUCCEEDED
