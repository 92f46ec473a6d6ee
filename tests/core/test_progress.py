"""What follows from the end of an attempt."""

from __future__ import annotations

import pytest

from verderer.core.model.attempt import End, EndCause
from verderer.core.model.run import RunState
from verderer.core.model.step import StepState
from verderer.core.opening import Opening, open_run
from verderer.core.pipeline.expand import expand
from verderer.core.pipeline.parse import parse
from verderer.core.pipeline.spec import OnClusterLost, StepSpec
from verderer.core.progress import (
    MAX_LAUNCHES,
    Again,
    Over,
    Release,
    after_attempt,
    after_needs,
    run_end,
)

ONCE = StepSpec(name="a", command=("x",))
TWICE = StepSpec(name="a", command=("x",), retries=1, backoff_s=5)
OK = End(cause=EndCause.EXIT, exit_code=0)
BAD = End(cause=EndCause.EXIT, exit_code=3)


@pytest.mark.parametrize(
    ("end", "spec", "failures", "state", "expected"),
    [
        pytest.param(
            OK, ONCE, 0, RunState.RUNNING, Over(StepState.SUCCEEDED), id="exit 0 is success"
        ),
        pytest.param(
            OK, ONCE, 0, RunState.CANCELLING, Over(StepState.SUCCEEDED), id="even while cancelling"
        ),
        pytest.param(
            BAD,
            ONCE,
            0,
            RunState.RUNNING,
            Over(StepState.FAILED, "exited with code 3"),
            id="no retries left is failure",
        ),
        pytest.param(BAD, TWICE, 0, RunState.RUNNING, Again(5), id="the first retry waits 5 s"),
        pytest.param(
            BAD,
            TWICE,
            1,
            RunState.RUNNING,
            Over(StepState.FAILED, "exited with code 3"),
            id="retries are counted",
        ),
        pytest.param(
            BAD,
            TWICE,
            0,
            RunState.CANCELLING,
            Over(StepState.CANCELLED),
            id="a run that is being cancelled starts nothing more",
        ),
        pytest.param(
            End(cause=EndCause.CANCELLED),
            TWICE,
            0,
            RunState.CANCELLING,
            Over(StepState.CANCELLED, "cancelled"),
            id="what was stopped on request is not tried again",
        ),
        pytest.param(
            End(cause=EndCause.LOST), TWICE, 0, RunState.RUNNING, Again(5), id="lost may be retried"
        ),
    ],
)
def test_after_attempt(
    end: End, spec: StepSpec, failures: int, state: RunState, expected: Again | Over
) -> None:
    assert after_attempt(end, spec, number=1, failures=failures, run_state=state) == expected


LOST = End(cause=EndCause.LOST)
RERUN = StepSpec(name="a", command=("x",), on_cluster_lost=OnClusterLost.RERUN)


def test_a_lost_attempt_that_may_be_rerun_is_no_failure() -> None:
    found = after_attempt(LOST, RERUN, number=2, failures=0, run_state=RunState.RUNNING)
    assert found == Again(5, failed=False)


def test_a_lost_attempt_is_rerun_in_no_run_that_is_being_cancelled() -> None:
    found = after_attempt(LOST, RERUN, number=1, failures=0, run_state=RunState.CANCELLING)
    assert found == Over(StepState.CANCELLED)


def test_a_step_that_is_lost_for_ever_ends() -> None:
    found = after_attempt(LOST, RERUN, number=MAX_LAUNCHES, failures=0, run_state=RunState.RUNNING)
    assert isinstance(found, Over)


def test_only_what_is_lost_is_rerun() -> None:
    found = after_attempt(BAD, RERUN, number=1, failures=0, run_state=RunState.RUNNING)
    assert isinstance(found, Over)


@pytest.mark.parametrize(
    ("when", "needs", "expected"),
    [
        pytest.param("succeeded()", {"a": StepState.SUCCEEDED}, Release(), id="all went well"),
        pytest.param(
            "succeeded()",
            {"a": StepState.FAILED},
            Over(StepState.SKIPPED, "a failed"),
            id="one failed",
        ),
        pytest.param("always()", {"a": StepState.FAILED}, Release(), id="cleaning runs always"),
        pytest.param("failed()", {"a": StepState.FAILED}, Release(), id="runs upon failure"),
        pytest.param(
            "params.x == 'b'", {}, Over(StepState.SKIPPED, "when: params.x == 'b'"), id="not wanted"
        ),
    ],
)
def test_after_needs(when: str, needs: dict[str, StepState], expected: Release | Over) -> None:
    spec = StepSpec(name="s", command=("x",), when=when)
    assert after_needs(spec, parameters={"x": "a"}, matrix={}, needs=needs) == expected


@pytest.mark.parametrize(
    ("state", "opened", "failed", "expected"),
    [
        pytest.param(RunState.RUNNING, 1, 1, None, id="a step is open"),
        pytest.param(RunState.RUNNING, 0, 0, RunState.SUCCEEDED, id="nothing failed"),
        pytest.param(RunState.RUNNING, 0, 2, RunState.FAILED, id="something failed"),
        pytest.param(RunState.CANCELLING, 0, 2, RunState.CANCELLED, id="it was cancelled"),
    ],
)
def test_run_end(state: RunState, opened: int, failed: int, expected: RunState | None) -> None:
    assert run_end(state, opened=opened, failed=failed) is expected


def test_what_is_skipped_at_once_decides_its_successors_at_once() -> None:
    pipeline = parse(
        b"metadata: {name: w}\nparameters: {deploy: 'no'}\nsteps:\n"
        b"- {name: a, command: [x], when: params.deploy == 'yes'}\n"
        b"- {name: b, needs: [a], command: [x]}\n"
        b"- {name: c, needs: [a], when: always(), command: [x]}\n"
        b"- {name: d, needs: [c], command: [x]}\n"
    )
    expansion = expand(pipeline, {})
    opened = open_run(pipeline, expansion.instances, expansion.edges, expansion.parameters)
    assert opened == [
        Opening(StepState.SKIPPED, note="when: params.deploy == 'yes'"),
        Opening(StepState.SKIPPED, note="a skipped"),
        Opening(StepState.READY),
        Opening(StepState.BLOCKED, 1),
    ]
