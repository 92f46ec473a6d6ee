"""The parts of a run as pages see them, and none of them from outside its project."""

from __future__ import annotations

import pytest

from tests.store.test_views_runs import EVERYTHING, Seeded, seeded
from verderer.core.model.attempt import EndCause
from verderer.core.model.step import StepState
from verderer.store.views.clusters import get_cluster, list_clusters
from verderer.store.views.logs import list_log_chunks, list_replicas
from verderer.store.views.steps import (
    Shown,
    get_step,
    list_artifacts,
    list_attempts,
    list_edges,
    list_steps,
)
from verderer.store.views.waiting import blockers, waiting

__all__ = ["seeded"]  # the fixture


async def test_steps_come_with_their_newest_attempt(seeded: Seeded) -> None:
    steps = await list_steps(seeded.tx, EVERYTHING, seeded.runs["nightly-eval"])
    train = steps[2]
    assert train.state is StepState.FAILED
    assert train.attempt is not None
    assert (train.attempt.number, train.attempt.cause) == (2, EndCause.EXIT)
    assert train.shown is Shown.FAILED
    assert steps[4].attempt is None
    assert steps[4].shown is Shown.SKIPPED


async def test_steps_go_on_by_key(seeded: Seeded) -> None:
    run = seeded.runs["lr-sweep"]
    whole = await list_steps(seeded.tx, EVERYTHING, run)
    parts = []
    after = -1
    while page := await list_steps(seeded.tx, EVERYTHING, run, after=after, limit=17):
        parts += page
        after = page[-1].idx
    assert parts == whole
    assert len(whole) == 200


async def test_a_silent_clusters_work_is_unknown_and_what_is_over_is_not(seeded: Seeded) -> None:
    run = seeded.runs["pretrain-tpu"]
    step = await get_step(seeded.tx, EVERYTHING, run, 0)
    assert step is not None
    assert step.shown is Shown.UNKNOWN
    assert step.attempt is not None
    assert step.attempt.seen_at is not None
    await seeded.tx.execute(
        "UPDATE attempts SET state = 'succeeded', cause = 'exit', exit_code = 0, ended_at = now()"
        " WHERE step_id = $1",
        step.id,
    )
    await seeded.tx.execute(
        "UPDATE steps SET state = 'succeeded', ended_at = now() WHERE id = $1", step.id
    )
    again = await get_step(seeded.tx, EVERYTHING, run, 0)
    assert again is not None
    assert again.shown is Shown.SUCCEEDED


async def test_waiting_steps_bring_their_reasons(seeded: Seeded) -> None:
    found = await waiting(seeded.tx, EVERYTHING, seeded.runs["llm-finetune"])
    assert [(w.name, len(w.reasons)) for w in found] == [("train", 3)]
    sweep = await waiting(seeded.tx, EVERYTHING, seeded.runs["lr-sweep"], limit=10)
    assert len(sweep) == 10
    assert sweep[0].reasons == ()


async def test_blocked_steps_name_what_is_not_over(seeded: Seeded) -> None:
    found = await blockers(seeded.tx, EVERYTHING, seeded.runs["lr-sweep"], 199, limit=5)
    assert len(found) == 5
    assert {b.state for b in found} <= {"active", "ready"}


async def test_edges_are_the_graph(seeded: Seeded) -> None:
    edges = await list_edges(seeded.tx, EVERYTHING, seeded.runs["digits"])
    pairs = [(e.step, e.successor) for e in edges]
    assert pairs == [(0, 1), (1, 2), (1, 3), (2, 4), (3, 4)]


async def test_nothing_of_a_run_is_read_from_outside_its_project(seeded: Seeded) -> None:
    run, tx, ana = seeded.runs["llm-finetune"], seeded.tx, seeded.ana
    assert await list_steps(tx, ana, run) == []
    assert await list_edges(tx, ana, run) == []
    assert await list_attempts(tx, ana, run, 0) == []
    assert await list_artifacts(tx, ana, run) == []
    assert await list_log_chunks(tx, ana, run, 0, 1) == []
    assert await list_replicas(tx, ana, run, 0, 1) == []
    assert await waiting(tx, ana, run) == []
    assert await blockers(tx, ana, run, 2) == []


async def test_clusters_say_what_they_have_and_who_is_silent(seeded: Seeded) -> None:
    clusters = {c.cluster_id: c for c in await list_clusters(seeded.tx, seeded.ana)}
    assert clusters["local"].online
    assert not clusters["proj-b-tpu"].online
    gpu = next(c for c in clusters["proj-a-gpu"].capacity if c.resource == "nvidia.com/gpu")
    assert (gpu.allocatable, gpu.largest) == (40_000, 8_000)
    assert clusters["proj-a-gpu"].ready == 5


@pytest.mark.parametrize(("everything", "live"), [(True, 1), (False, 0)])
async def test_a_cluster_names_the_readers_own_work_alone(
    seeded: Seeded, everything: bool, live: int
) -> None:
    scope = EVERYTHING if everything else seeded.ana
    detail = await get_cluster(seeded.tx, scope, "proj-b-tpu")
    assert detail is not None
    assert len(detail.live) == live
    assert len(detail.nodes) == 4
    assert await get_cluster(seeded.tx, scope, "absent") is None
