"""The truth table of ends."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.drivers.kubernetes.make import (
    ENDED,
    ENDED_MS,
    STARTED_MS,
    disrupted,
    ended,
    job,
    pod,
    running,
    unscheduled,
    waiting,
)
from verderer.core.model.attempt import AttemptState, EndCause
from verderer.drivers.kubernetes.deciding.ending import View, judge
from verderer.drivers.kubernetes.intention import Stop

S, C = AttemptState, EndCause
FAILED = ("Failed", "BackoffLimitExceeded", "Job has reached the specified backoff limit")


def seen(*pods: Any, **fields: Any) -> View:
    return View(**{"pods": pods, "had_job": True, "job": job(), **fields})


EXITS = [
    pytest.param(seen(ended(0)), C.EXIT, 0, None, "", id="exit code 0, before the Job says so"),
    pytest.param(seen(job=job(("Complete", "", ""))), C.EXIT, 0, None, "", id="the Job's word"),
    pytest.param(seen(ended(3)), C.EXIT, 3, None, "exit code 3", id="another exit code"),
    pytest.param(seen(ended(137)), C.SIGNAL, None, 9, "signal 9", id="137 is signal 9"),
    pytest.param(seen(ended(139)), C.SIGNAL, None, 11, "", id="139 is signal 11"),
    pytest.param(seen(ended(128)), C.EXIT, 128, None, "", id="128 is no signal"),
    pytest.param(seen(ended(255)), C.EXIT, 255, None, "", id="255 is no signal"),
    pytest.param(
        seen(ended(137, reason="OOMKilled")), C.OOM, None, 9, "memory limit", id="its own memory"
    ),
    pytest.param(
        seen(
            job=job(
                (
                    "Failed",
                    "PodFailurePolicy",
                    "Container main for pod a/b failed with exit code 7 matching FailJob rule",
                )
            )
        ),
        C.EXIT,
        7,
        None,
        "",
        id="pods are gone, the Job remembers the exit code",
    ),
    pytest.param(
        seen(ended(0), job=None, job_gone=True),
        C.EXIT,
        0,
        None,
        "",
        id="its Job was deleted after it had succeeded",
    ),
    pytest.param(
        seen(ended(3, deleted="2026-12-01T11:00:00Z", grace=30), job=job(FAILED)),
        C.EXIT,
        3,
        None,
        "",
        id="its pod was deleted long after it had failed",
    ),
]


@pytest.mark.parametrize(("view", "cause", "exit_code", "signal", "words"), EXITS)
def test_what_the_program_did(
    view: View, cause: EndCause, exit_code: int | None, signal: int | None, words: str
) -> None:
    end = judge(view).end
    assert end is not None
    assert (end.cause, end.exit_code, end.signal) == (cause, exit_code, signal), end
    assert words in end.message


@pytest.mark.parametrize(
    ("view", "cause", "words"),
    [
        pytest.param(
            seen(pod(0, "Failed", reason="Evicted", message="low on resource: memory")),
            C.LOST,
            "evicted it: low on resource: memory",
            id="the node's memory is not the step's fault",
        ),
        pytest.param(
            seen(ended(137, conditions=[disrupted("TerminationByKubelet", message="pressure")])),
            C.LOST,
            "the node evicted it: pressure",
            id="killed by the node under pressure",
        ),
        pytest.param(
            seen(ended(143, conditions=[disrupted("PreemptionByScheduler", message="by x")])),
            C.LOST,
            "preempted",
            id="preempted, and not a signal",
        ),
        pytest.param(
            seen(ended(143, conditions=[disrupted("EvictionByEvictionAPI")])),
            C.LOST,
            "drained",
            id="drained",
        ),
        pytest.param(
            seen(
                running(conditions=[disrupted("DeletionByTaintManager")]),
                gone=frozenset({"pod-0"}),
                job=job(("Failed", "PodFailurePolicy", "matching DisruptionTarget")),
            ),
            C.LOST,
            "node became unusable",
            id="its node was lost, and the cluster has given it up",
        ),
        pytest.param(
            seen(pod(0, "Failed", reason="DeadlineExceeded"), timeout_s=0.2),
            C.TIMEOUT,
            "0.2 s",
            id="the kubelet's clock ran out",
        ),
        pytest.param(
            seen(job=job(("Failed", "DeadlineExceeded", "")), timeout_s=60),
            C.TIMEOUT,
            "60 s",
            id="the Job's clock ran out",
        ),
        pytest.param(seen(ended(128, reason="StartError")), C.START, "", id="no such program"),
        pytest.param(
            seen(pod(0, "Failed", reason="UnexpectedAdmissionError", message="no device")),
            C.START,
            "no device",
            id="the device plugin refused",
        ),
        pytest.param(
            seen(pod(0, "Failed", reason="OutOfnvidia.com/gpu", message="short")),
            C.START,
            "no room",
            id="the node was full after all",
        ),
        pytest.param(seen(job=job(FAILED)), C.LOST, "pods are gone", id="nobody remembers"),
        pytest.param(
            seen(job=None, job_gone=True),
            C.LOST,
            "deleted by somebody else",
            id="its Job was deleted",
        ),
        pytest.param(
            seen(ended(143, deleted="2026-12-01T10:05:20Z", grace=30), job=job(FAILED)),
            C.LOST,
            "pod was deleted",
            id="its pod was deleted by hand",
        ),
        pytest.param(
            seen(running(), gone=frozenset({"pod-0"}), job=job(FAILED)),
            C.LOST,
            "nobody saw how it ended",
            id="its pod vanished while it ran",
        ),
    ],
)
def test_what_was_done_to_it(view: View, cause: EndCause, words: str) -> None:
    end = judge(view).end
    assert end is not None
    assert (end.cause, end.exit_code, end.signal) == (cause, None, None), end
    assert words in end.message


@pytest.mark.parametrize(
    ("view", "state"),
    [
        pytest.param(seen(), S.STARTING, id="no pod yet"),
        pytest.param(seen(unscheduled("0/1")), S.STARTING, id="no node yet"),
        pytest.param(seen(waiting("ImagePullBackOff")), S.STARTING, id="no image yet"),
        pytest.param(seen(running()), S.RUNNING, id="it runs"),
        pytest.param(
            seen(pod(0, "Unknown", state={"running": {"startedAt": ENDED}})),
            S.RUNNING,
            id="the node is silent: that is no end",
        ),
        pytest.param(
            seen(running(conditions=[disrupted("DeletionByTaintManager")], deleted=ENDED)),
            S.RUNNING,
            id="doomed, and not over: its node may be out of reach and still run it",
        ),
        pytest.param(
            seen(running(0), waiting("x", rank=1), nodes=2), S.STARTING, id="half of the replicas"
        ),
        pytest.param(seen(running(0), running(1), nodes=2), S.RUNNING, id="all replicas"),
        pytest.param(
            seen(ended(0, 0), running(1), nodes=2), S.RUNNING, id="one of two has succeeded"
        ),
        pytest.param(
            seen(ended(3, 0), running(1), nodes=2),
            S.RUNNING,
            id="one of two has failed, the other is still being stopped",
        ),
        pytest.param(
            seen(ended(3, 0), nodes=2), S.STARTING, id="one has failed, the other may still be made"
        ),
        pytest.param(seen(running(), stop=Stop()), S.STOPPING, id="asked to stop"),
        pytest.param(seen(stop=Stop()), S.STOPPING, id="its Job is still to be deleted"),
        pytest.param(
            seen(running(), job=job(deleted=ENDED)), S.STOPPING, id="somebody deletes its Job"
        ),
        pytest.param(
            seen(running(), job=None, job_gone=True),
            S.RUNNING,
            id="its Job is gone and its pod still runs",
        ),
        pytest.param(
            seen(running(), job=job(("FailureTarget", "x", "y"))), S.RUNNING, id="about to end"
        ),
    ],
)
def test_no_end(view: View, state: AttemptState) -> None:
    verdict = judge(view)
    assert verdict.end is None
    assert verdict.state is state


def test_the_first_failure_is_the_attempts() -> None:
    view = seen(
        ended(143, 0, at="2026-12-01T10:05:09Z", deleted="2026-12-01T10:05:31Z", grace=30),
        ended(7, 1, at="2026-12-01T10:05:00Z"),
        ended(143, 2, at="2026-12-01T10:04:59Z", deleted="2026-12-01T10:05:00Z", grace=30),
        nodes=3,
        job=job(FAILED),
    )
    end = judge(view).end
    assert end is not None
    assert (end.cause, end.exit_code, end.message) == (C.EXIT, 7, "replica 1 of 3: exit code 7")


def test_times_are_those_of_the_program() -> None:
    verdict = judge(seen(running()))
    assert (verdict.started_ms, verdict.node) == (STARTED_MS, "node-0")
    verdict = judge(seen(ended(0)))
    assert (verdict.started_ms, verdict.ended_ms) == (STARTED_MS, ENDED_MS)


def test_what_never_ran_has_no_start() -> None:
    state = {"terminated": {"exitCode": 128, "reason": "StartError", "finishedAt": ENDED}}
    assert judge(seen(pod(0, "Failed", state=state))).started_ms is None


@pytest.mark.parametrize(
    ("stop", "cause", "words"),
    [
        pytest.param(Stop(), C.CANCELLED, "on request", id="somebody asked"),
        pytest.param(Stop(cause="timeout"), C.TIMEOUT, "its timeout of 5 s", id="too long"),
        pytest.param(
            Stop(cause="start", message="no such image"), C.START, "no such image", id="hopeless"
        ),
        pytest.param(Stop(cause="nonsense"), C.CANCELLED, "", id="a cause of a later version"),
    ],
)
def test_a_stop_says_why(stop: Stop, cause: EndCause, words: str) -> None:
    view = View(stop=stop, had_job=True, job_gone=True, timeout_s=5, pods=[ended(143)])
    end = judge(view).end
    assert end is not None
    assert end.cause is cause
    assert words in end.message


def test_a_stop_of_what_has_no_job_is_an_end_at_once() -> None:
    assert judge(View(stop=Stop())).state is S.CANCELLED


def test_success_wins_over_a_stop_that_came_too_late() -> None:
    assert judge(seen(ended(0), stop=Stop())).state is S.SUCCEEDED


def test_messages_are_bounded() -> None:
    end = judge(seen(pod(0, "Failed", reason="Evicted", message="x" * 9_000))).end
    assert end is not None
    assert len(end.message) == 2_000


_PHASES = st.sampled_from(["Pending", "Running", "Succeeded", "Failed", "Unknown"])
_STATES = st.one_of(
    st.none(),
    st.just({"running": {"startedAt": ENDED}}),
    st.builds(
        lambda code, reason: {"terminated": {"exitCode": code, "reason": reason}},
        st.integers(-1, 300),
        st.sampled_from(["", "Error", "OOMKilled", "StartError", "Completed"]),
    ),
)
_PODS = st.builds(
    lambda rank, phase, state, deleted, why: pod(
        rank,
        phase,
        uid=f"{rank}-{phase}",
        state=state,
        deleted=ENDED if deleted else "",
        conditions=[disrupted(why)] if why else [],
    ),
    st.integers(0, 3),
    _PHASES,
    _STATES,
    st.booleans(),
    st.sampled_from(["", "PreemptionByScheduler", "Odd"]),
)


@given(
    pods=st.lists(_PODS, max_size=4),
    nodes=st.integers(1, 4),
    stop=st.sampled_from([None, Stop(), Stop(cause="timeout")]),
    gone=st.booleans(),
    failed=st.booleans(),
)
def test_nothing_alive_is_ever_over(
    pods: list[Any], nodes: int, stop: Stop | None, gone: bool, failed: bool
) -> None:
    view = View(
        nodes=nodes,
        stop=stop,
        had_job=True,
        job=None if gone else job(*([FAILED] if failed else [])),
        job_gone=gone,
        pods=pods,
    )
    verdict = judge(view)
    alive = any(one.status.phase not in ("Succeeded", "Failed") for one in pods)
    assert not (alive and verdict.end is not None)
    assert (verdict.end is None) != verdict.state.over
    if verdict.end is not None:
        assert verdict.state is verdict.end.state
