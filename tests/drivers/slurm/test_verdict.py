"""How an attempt ended: the truth table."""

from __future__ import annotations

import os
import signal
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from verderer.core.model.attempt import AttemptState, EndCause
from verderer.drivers.slurm.node import step
from verderer.drivers.slurm.readers.jobs import ENDED, SlurmJob
from verderer.drivers.slurm.verdict import NOT_OURS, Evidence, RankExit, read_exit, verdict

KEY = "v0000123456789abc-0-1"
JOB = SlurmJob(id=7, name=KEY, state="COMPLETED", started_s=1_000, limit_s=3_600, restarts=0)


def rank(number: int = 0, *, why: str = "", status: int = 0, **more: Any) -> RankExit:
    fields = {"message": "", "ended_ms": 2_000_000, "told_ms": None, "log_bytes": 0, **more}
    return RankExit(rank=number, why=why, status=status, **fields)


def code(number: int) -> int:
    return number << 8


def seen(state: str = "", *ranks: RankExit, **more: Any) -> Evidence:
    job = more.pop("job", replace(JOB, state=state) if state else None)
    fields: dict[str, Any] = {"claimed": True, "timeout_s": 60.0, **more}
    return Evidence(job=job, exits={one.rank: one for one in ranks}, **fields)


TOLD = rank(why="told", status=signal.SIGTERM, told_ms=1_500_000)
KILLED = rank(status=signal.SIGKILL)


@pytest.mark.parametrize(
    ("evidence", "cause", "exit_code", "number"),
    [
        pytest.param(seen("COMPLETED", rank()), "exit", 0, None, id="success"),
        pytest.param(seen("FAILED", rank(status=code(3))), "exit", 3, None, id="an exit code"),
        pytest.param(seen("FAILED", KILLED), "signal", None, 9, id="killed by somebody"),
        pytest.param(seen("OUT_OF_MEMORY", KILLED), "oom", None, 9, id="out of memory"),
        pytest.param(
            seen("OUT_OF_MEMORY", rank(status=code(137))),
            "oom",
            137,
            None,
            id="a child of the program ran out of memory and the program failed for it",
        ),
        pytest.param(
            seen("OUT_OF_MEMORY", rank()),
            "exit",
            0,
            None,
            id="a child ran out of memory and the program succeeded all the same",
        ),
        pytest.param(
            seen("FAILED", rank(why="timeout", status=signal.SIGTERM)),
            "timeout",
            None,
            15,
            id="our timeout, politely",
        ),
        pytest.param(
            seen("COMPLETED", rank(why="timeout")), "timeout", 0, None, id="our timeout, heeded"
        ),
        pytest.param(
            seen("FAILED", rank(why="start", status=code(127))),
            "start",
            None,
            None,
            id="no such command",
        ),
        pytest.param(seen("TIMEOUT"), "timeout", None, None, id="Slurm's limit, without a word"),
        pytest.param(seen("TIMEOUT", TOLD), "timeout", None, 15, id="Slurm's limit"),
        pytest.param(
            seen("FAILED", replace(TOLD, told_ms=4_590_000)),
            "timeout",
            None,
            15,
            id="it heeded Slurm's warning of its limit",
        ),
        pytest.param(
            seen("FAILED", TOLD), "signal", None, 15, id="somebody sent SIGTERM in mid-run"
        ),
        pytest.param(
            seen("COMPLETED", rank(why="told", told_ms=1_500_000)),
            "signal",
            None,
            15,
            id="a program that ends politely when told has not succeeded",
        ),
        pytest.param(seen("CANCELLED", TOLD), "cancelled", None, 15, id="scancel by somebody"),
        pytest.param(seen("CANCELLED"), "cancelled", None, None, id="scancel, killed at once"),
        pytest.param(
            seen("FAILED", TOLD, stopped=True), "cancelled", None, 15, id="we stopped it politely"
        ),
        pytest.param(
            seen("CANCELLED", stopped=True), "cancelled", None, None, id="we stopped it by force"
        ),
        pytest.param(
            seen("COMPLETED", rank(), stopped=True),
            "exit",
            0,
            None,
            id="it was done before our stop came",
        ),
        pytest.param(seen("PREEMPTED", TOLD), "lost", None, 15, id="preempted"),
        pytest.param(seen("NODE_FAIL"), "lost", None, None, id="the node failed"),
        pytest.param(
            seen("NODE_FAIL", rank(0), nodes=2), "lost", None, None, id="one of two nodes failed"
        ),
        pytest.param(
            seen("NODE_FAIL", rank()), "exit", 0, None, id="the node failed after the end"
        ),
        pytest.param(seen("BOOT_FAIL", claimed=False), "start", None, None, id="no boot"),
        pytest.param(seen("DEADLINE"), "timeout", None, None, id="Slurm's deadline"),
        pytest.param(
            seen("FAILED", claimed=False), "start", None, None, id="failed before it began"
        ),
        pytest.param(
            seen("CANCELLED", claimed=False),
            "cancelled",
            None,
            None,
            id="cancelled while it waited",
        ),
        pytest.param(
            seen(job=replace(JOB, state="FAILED", exit_code=5)),
            "exit",
            5,
            None,
            id="no document, but Slurm's exit code",
        ),
        pytest.param(
            seen(job=replace(JOB, state="FAILED", signal=11)),
            "signal",
            None,
            11,
            id="no document, but Slurm's signal",
        ),
        pytest.param(
            seen(job=replace(JOB, state="COMPLETED", exit_code=0)),
            "exit",
            0,
            None,
            id="no document, and Slurm says success",
        ),
        pytest.param(seen("OUT_OF_MEMORY"), "oom", None, 9, id="memory, without a document"),
        pytest.param(seen("FAILED"), "lost", None, None, id="nobody knows"),
        pytest.param(
            seen(job=replace(JOB, state="PENDING", restarts=1)),
            "lost",
            None,
            None,
            id="put back into the queue",
        ),
        pytest.param(
            seen("", rank()), "exit", 0, None, id="Slurm has forgotten, our document has not"
        ),
        pytest.param(seen("", silent=True), "lost", None, None, id="forgotten and silent"),
        pytest.param(
            seen("", barred=True, claimed=False, stopped=True),
            "cancelled",
            None,
            None,
            id="stopped before it began",
        ),
        pytest.param(
            seen("", barred=True, claimed=False), "lost", None, None, id="lost before it began"
        ),
        pytest.param(
            seen(
                "FAILED", replace(KILLED, rank=0, ended_ms=9), rank(1, status=code(3), ended_ms=5)
            ),
            "exit",
            3,
            None,
            id="the first failure of several ranks counts",
        ),
    ],
)
def test_how_it_ended(
    evidence: Evidence, cause: str, exit_code: int | None, number: int | None
) -> None:
    end = verdict(evidence)
    assert end is not None
    assert (end.cause.value, end.exit_code, end.signal) == (cause, exit_code, number), end


def test_a_job_that_may_not_run_says_so_as_the_verdict_expects() -> None:
    assert NOT_OURS == step.NOT_OURS


@pytest.mark.parametrize(
    "evidence",
    [
        pytest.param(seen("RUNNING"), id="it runs"),
        pytest.param(seen("PENDING", claimed=False), id="it waits"),
        pytest.param(seen("SUSPENDED"), id="it is suspended"),
        pytest.param(seen("COMPLETING"), id="its nodes are being tidied and it left no word"),
        pytest.param(
            seen("COMPLETING", rank(status=code(1))), id="Slurm may still say that memory ran out"
        ),
        pytest.param(seen(""), id="Slurm does not know it, and it may well run"),
        pytest.param(seen("", claimed=False), id="Slurm does not know it yet"),
        pytest.param(seen("", rank(0), nodes=2), id="one of two ranks has ended, Slurm is mute"),
        pytest.param(
            seen(job=replace(JOB, state="FAILED", exit_code=75)),
            id="Slurm ran the job anew, which did nothing, and the first one may be alive",
        ),
        pytest.param(seen("SOMETHING_NEW"), id="a state that nobody knows"),
        pytest.param(seen(job=replace(JOB, state="FAILED", flags=frozenset({"COMPLETING"})))),
    ],
)
def test_what_is_unknown_is_not_done(evidence: Evidence) -> None:
    assert verdict(evidence) is None


def test_a_success_need_not_wait_for_the_epilog() -> None:
    end = verdict(seen("COMPLETING", rank()))
    assert end is not None
    assert end.state is AttemptState.SUCCEEDED


def test_whoever_cancelled_is_named() -> None:
    end = verdict(seen(job=replace(JOB, state="CANCELLED", cancelled_by="alice")))
    assert end is not None
    assert end.message == "user alice cancelled the job in Slurm"


def test_the_timeout_is_said_with_its_length() -> None:
    end = verdict(seen("FAILED", rank(why="timeout", status=9), timeout_s=0.2))
    assert end is not None
    assert "0.2 s" in end.message


_RANKS = st.builds(
    rank,
    st.integers(0, 3),
    why=st.sampled_from(["", "told", "timeout", "start"]),
    status=st.sampled_from([0, code(1), code(127), 9, 15]),
    told_ms=st.none() | st.integers(0, 10_000_000),
    message=st.text(max_size=3_000),
)
_EVIDENCE = st.builds(
    seen,
    st.sampled_from([*sorted(ENDED), "", "PENDING", "RUNNING", "COMPLETING", "SPECIAL_EXIT"]),
    nodes=st.integers(1, 4),
    claimed=st.booleans(),
    stopped=st.booleans(),
    silent=st.booleans(),
    said=st.text(max_size=500),
).flatmap(
    lambda one: st.lists(_RANKS, max_size=4).map(
        lambda ranks: replace(one, exits={r.rank: r for r in ranks if r.rank < one.nodes})
    )
)


@given(evidence=_EVIDENCE)
def test_it_is_never_over_while_slurm_says_that_it_runs(evidence: Evidence) -> None:
    end = verdict(evidence)
    if evidence.job is not None and evidence.job.state in ("RUNNING", "PENDING"):
        assert end is None
    if evidence.job is not None and evidence.job.over:
        assert end is not None  # its exit code is not that of a job which may not run
        assert len(end.message) <= 2_000


@given(evidence=_EVIDENCE)
def test_success_has_the_word_of_every_rank_or_of_slurm(evidence: Evidence) -> None:
    end = verdict(evidence)
    if end is not None and end.state is AttemptState.SUCCEEDED:
        ranks = evidence.exits.values()
        of_slurm = evidence.job is not None and evidence.job.state == "COMPLETED"
        assert all(one.good for one in ranks)
        assert len(ranks) >= evidence.nodes or of_slurm


@given(evidence=_EVIDENCE)
def test_what_we_stopped_is_cancelled_unless_it_ended_by_itself(evidence: Evidence) -> None:
    end = verdict(replace(evidence, stopped=True))
    if end is not None and not any(one.why != "told" for one in evidence.exits.values()):
        assert end.cause in (EndCause.CANCELLED, EndCause.EXIT)


@given(
    document=st.dictionaries(
        st.sampled_from(["why", "status", "message", "ended_ms", "told_ms", "log_bytes"]),
        st.none() | st.integers() | st.text(max_size=5),
    )
)
def test_any_document_is_an_exit_or_none(document: dict[str, object]) -> None:
    found = read_exit(0, document)
    if found is not None:
        assert found.exit_code is None or 0 <= found.exit_code <= 255
        assert found.signal is None or os.WIFSIGNALED(found.status)
