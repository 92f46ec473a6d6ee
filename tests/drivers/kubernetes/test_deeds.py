from __future__ import annotations

from typing import Any

import msgspec
import pytest

from tests.drivers.kubernetes.make import (
    STARTED_MS,
    ended,
    job,
    running,
    unscheduled,
    waiting,
)
from verderer.drivers.kubernetes.deciding.deeds import Case, Deeds, due
from verderer.drivers.kubernetes.deciding.ending import View, judge
from verderer.drivers.kubernetes.deciding.waiting import explain
from verderer.drivers.kubernetes.intention import Intention, Stop
from verderer.drivers.kubernetes.terms import Terms

TERMS = Terms(start_wait_s=300, gang_wait_s=600, timeout_margin_s=10)
NOW = STARTED_MS + 60_000


def decided(view: View, **fields: Any) -> Deeds:
    status = fields.pop("status", {"phase": "Starting", "jobUid": "job-1", "node": "node-0"})
    refusal = fields.pop("refusal", "")
    verdict = judge(view)
    waits = None
    if verdict.state == "starting":
        waits = explain(view.pods, nodes=view.nodes, job=view.job, refusal=refusal)
    intention = msgspec.convert({"status": status}, Intention)
    case = Case(
        **{
            "intention": intention,
            "view": view,
            "verdict": verdict,
            "waits": waits,
            "waited_s": 0.0,
            "age_s": 60.0,
            "noted_s": 0.0,
            "hurried": frozenset(),
            "now_ms": NOW,
            **fields,
        }
    )
    return due(case, TERMS)


def test_what_has_no_job_gets_one() -> None:
    assert decided(View()).make_job
    assert not decided(View(had_job=True, job=job())).make_job
    assert not decided(View(stop=Stop())).make_job


def test_an_end_is_put_on_record() -> None:
    status = decided(View(had_job=True, job=job(), pods=[ended(3)])).status
    assert status is not None
    assert (status["phase"], status["end"]["exitCode"]) == ("Failed", 3)
    assert status["endedAt"] == "2026-12-01T10:05:00.000Z"


def test_a_stop_takes_the_job_away_and_hurries_its_pods() -> None:
    view = View(stop=Stop(), had_job=True, job=job(), pods=[running()])
    deeds = decided(view)
    assert deeds.delete_job
    assert [pod.metadata.uid for pod in deeds.hurry] == ["pod-0"]
    assert not decided(view, hurried=frozenset({"pod-0"})).hurry
    going = View(stop=Stop(), had_job=True, job=job(deleted="2026-12-01T10:00:00Z"))
    assert not decided(going).delete_job


@pytest.mark.parametrize(
    ("passed_s", "stops"),
    [pytest.param(69, False, id="the kubelet's turn"), pytest.param(71, True, id="ours")],
)
def test_what_runs_too_long_is_ended_when_the_kubelet_does_not(passed_s: int, stops: bool) -> None:
    view = View(had_job=True, job=job(), pods=[running()], timeout_s=60)
    deeds = decided(view, now_ms=STARTED_MS + passed_s * 1000)
    assert (deeds.stop is not None) is stops
    if deeds.stop is not None:
        assert deeds.stop["cause"] == "timeout"
    else:
        assert deeds.look_again_s == pytest.approx(1.0)


@pytest.mark.parametrize(
    ("pods", "refusal", "waited_s", "cause"),
    [
        pytest.param([waiting("ErrImagePull", "x")], "", 299, None, id="the image may come yet"),
        pytest.param([waiting("ErrImagePull", "x")], "", 301, "start", id="it did not come"),
        pytest.param([waiting("InvalidImageName", "x")], "", 0, "start", id="it never can"),
        pytest.param([], 'violates PodSecurity "x"', 0, "start", id="a policy says no"),
        pytest.param([], 'webhook "x" denied the request: y', 0, "start", id="a webhook says no"),
        pytest.param([], 'failed calling webhook "x"', 299, None, id="a webhook may be mended"),
        pytest.param([], "exceeded quota: q, requested: a", 9_999, None, id="quotas free up"),
        pytest.param([unscheduled("0/1")], "", 9_999, None, id="a place may come free"),
    ],
)
def test_waiting_is_bounded_where_it_cannot_help(
    pods: list[Any], refusal: str, waited_s: float, cause: str | None
) -> None:
    view = View(had_job=True, job=job(), pods=pods)
    stop = decided(view, refusal=refusal, waited_s=waited_s).stop
    assert (stop["cause"] if stop else None) == cause


def test_half_a_gang_does_not_hold_its_places_for_ever() -> None:
    message = "0/2 nodes are available: 2 Insufficient nvidia.com/gpu."
    view = View(nodes=2, had_job=True, job=job(), pods=[running(0), unscheduled(message, rank=1)])
    assert decided(view, waited_s=599).stop is None
    stop = decided(view, waited_s=601).stop
    assert stop is not None
    assert "not all replicas found a place within 600 s" in stop["message"]


def test_what_is_on_record_is_not_written_again() -> None:
    view = View(had_job=True, job=job(), pods=[running()])
    status = decided(view).status
    assert status is not None
    assert status["phase"] == "Running"
    known = {
        "phase": "Running",
        "jobUid": "job-1",
        "node": "node-0",
        "startedAt": "2026-12-01T10:00:00.000Z",
    }
    assert decided(view, status=known).status is None


def test_what_has_just_begun_is_written_about_a_little_later() -> None:
    view = View(had_job=True, job=job(), pods=[running()])
    deeds = decided(view, age_s=0.25)
    assert (deeds.status, deeds.look_again_s) == (None, 0.75)
    over = View(had_job=True, job=job(), pods=[ended(0)])
    assert decided(over, age_s=0.25).status is not None


def test_a_changed_message_alone_is_written_now_and_then() -> None:
    view = View(had_job=True, job=job(), pods=[unscheduled("0/9 nodes are available: 9 x.")])
    known = {"phase": "Starting", "jobUid": "job-1", "reason": "nodes", "message": "0/8"}
    assert decided(view, status=known, noted_s=3).status is None
    written = decided(view, status=known, noted_s=11).status
    assert written is not None
    assert written["message"].startswith("0/9")
    other = {**known, "reason": "image"}
    assert decided(view, status=other, noted_s=3).status is not None
