"""What pages read of tracked runs: curves, parameters, lists; and the samples below them."""

from __future__ import annotations

import math
import random
from collections.abc import Sequence

import pytest

from verderer.core.model.actor import Scope
from verderer.core.tracking.samples import PACK, Sample, columns_of, pack, recency
from verderer.store.database import Database, Tx
from verderer.store.tables.tracking import experiments, runs, samples
from verderer.store.tables.tracking.runs import NewRun
from verderer.store.views import tracking
from verderer.store.views.tracked import samples as histories

RUN = 77
ALL = Scope(everything=True)


async def make_project(tx: Tx, name: str = "ours") -> int:
    found: int = await tx.fetchval("INSERT INTO projects (name) VALUES ($1) RETURNING id", name)
    return found


async def make_pipeline(tx: Tx, project: int, *steps: str) -> None:
    await tx.execute("INSERT INTO documents (sha256, body) VALUES (sha256('x'), 'x')")
    await tx.execute(
        "INSERT INTO runs (id, project_id, name, document, state, steps, open, actor) "
        "VALUES ($1, $2, 'train', sha256('x'), 'running', $3, $3, 'user:a')",
        RUN,
        project,
        len(steps),
    )
    shape = await tx.fetchval(
        "INSERT INTO shapes (digest, requests, nodes) VALUES (sha256('x'), '{}', 1) RETURNING id"
    )
    for idx, name in enumerate(steps):
        await tx.execute(
            "INSERT INTO steps (id, run_id, idx, name, template, shape_id, state, waits) "
            "VALUES ($1, $2, $3, $4, 0, $5, 'active', 0)",
            1000 + idx,
            RUN,
            idx,
            name,
            shape,
        )


async def make_run(tx: Tx, project: int, experiment: int, *, step: int | None = None) -> int:
    made = await runs.add(
        tx,
        NewRun(
            uid=f"{random.getrandbits(128):032x}",
            experiment=experiment,
            project=project,
            name="try",
            user="ana",
            start_ms=1,
            run=None if step is None else RUN,
            step=step,
            attempt=None if step is None else 1,
        ),
    )
    return made.id


async def write(tx: Tx, tracked: int, given: Sequence[Sample], size: int = 1_000) -> None:
    for start in range(0, len(given), size):
        await samples.add(tx, tracked, pack(columns_of(given[start : start + size])))


async def test_the_latest_sample_is_kept_in_whatever_order_they_come(database: Database) -> None:
    given = [
        Sample("m", value, at_ms, step)
        for value in (-1.0, 0.5, math.nan, math.inf)
        for at_ms in (1, 2)
        for step in (-1, 0, 7)
    ]
    for seed in range(5):
        random.Random(seed).shuffle(given)
        async with database.transaction() as tx:
            project = await make_project(tx, f"p{seed}")
            await experiments.add(tx, id=seed + 1, project=project, name="e", now_ms=1)
            tracked = await make_run(tx, project, seed + 1)
            await write(tx, tracked, given, size=5)
            row = await tx.fetchrow(
                "SELECT value, at_ms, step FROM tracking_series WHERE tracked_id = $1", tracked
            )
        assert row is not None
        latest = max(given, key=recency)
        assert (row["step"], row["at_ms"], row["value"]) == (
            latest.step,
            latest.at_ms,
            latest.value,
        )


async def test_many_samples_take_few_rows(database: Database) -> None:
    async with database.transaction() as tx:
        project = await make_project(tx)
        await experiments.add(tx, id=1, project=project, name="e", now_ms=1)
        tracked = await make_run(tx, project, 1)
        await write(tx, tracked, [Sample("m", i / 3, i, i) for i in range(1_000)])
        rows = await tx.fetchval("SELECT count(*) FROM tracking_points")
        toasted = await tx.fetchval(
            "SELECT pg_relation_size(reltoastrelid) FROM pg_class WHERE relname = 'tracking_points'"
        )
    assert rows == -(-1_000 // PACK)
    assert toasted == 0


async def test_the_curves_of_a_run_are_grouped_by_metric_and_name_their_step(
    database: Database,
) -> None:
    async with database.transaction() as tx:
        project = await make_project(tx)
        await make_pipeline(tx, project, "prepare", "fit-a", "fit-b")
        await experiments.add(tx, id=1, project=project, name="train", now_ms=1)
        for step in (1, 2):
            tracked = await make_run(tx, project, 1, step=step)
            await write(tx, tracked, [Sample("loss", 1 / (i + step), i, i) for i in range(50)])
            await write(tx, tracked, [Sample("acc", 0.5, 1, 0)] * step)
            await runs.add_params(tx, tracked, (("lr", str(step)),))
        await write(tx, await make_run(tx, project, 1), [Sample("loss", 1.0, 1)])
        found = await tracking.metrics_of_run(tx, ALL, RUN)
        params = await tracking.params_of_run(tx, ALL, RUN)
    assert list(found) == ["acc", "loss"]
    assert [(c.tracked.step, c.total, len(c.points)) for c in found["loss"]] == [
        ("fit-a", 50, 50),
        ("fit-b", 50, 50),
    ]
    assert [p.step for p in found["loss"][0].points] == list(range(50))
    assert [c.total for c in found["acc"]] == [1, 1]
    assert found["loss"][1].tracked.latest == {"acc": 0.5, "loss": 1 / 51}
    assert [(p.tracked.step, p.params) for p in params] == [
        ("fit-a", (("lr", "1"),)),
        ("fit-b", (("lr", "2"),)),
    ]


@pytest.mark.parametrize("points", [4, 10, 301])
async def test_a_thinned_curve_keeps_its_ends_peaks_and_dips(
    database: Database, points: int
) -> None:
    values = [math.sin(i / 50) for i in range(5_000)]
    values[1234], values[4321] = 9.0, -9.0
    async with database.transaction() as tx:
        project = await make_project(tx)
        await make_pipeline(tx, project, "fit")
        await experiments.add(tx, id=1, project=project, name="train", now_ms=1)
        tracked = await make_run(tx, project, 1, step=0)
        await write(tx, tracked, [Sample("m", v, i, i) for i, v in enumerate(values)])
        (curve,) = (await tracking.metrics_of_run(tx, ALL, RUN, points=points))["m"]
    steps = [p.step for p in curve.points]
    assert steps == sorted(set(steps))
    assert {0, 1234, 4321, 4999} <= set(steps)
    assert points / 2 <= len(steps) <= points
    assert curve.total == 5_000


async def test_a_curve_of_nan_and_infinities_is_drawn_too(database: Database) -> None:
    async with database.transaction() as tx:
        project = await make_project(tx)
        await make_pipeline(tx, project, "fit")
        await experiments.add(tx, id=1, project=project, name="train", now_ms=1)
        tracked = await make_run(tx, project, 1, step=0)
        given = [Sample("nan", math.nan, i, i) for i in range(100)]
        given += [Sample("mixed", math.inf if i == 50 else math.nan, i, i) for i in range(100)]
        await write(tx, tracked, given)
        found = await tracking.metrics_of_run(tx, ALL, RUN, points=10)
    assert all(math.isnan(p.value) for p in found["nan"][0].points)
    assert math.inf in [p.value for p in found["mixed"][0].points]
    assert found["nan"][0].points[-1].step == 99


async def test_pages_show_nothing_of_other_projects(database: Database) -> None:
    async with database.transaction() as tx:
        project, other = await make_project(tx), await make_project(tx, "theirs")
        await make_pipeline(tx, project, "fit")
        await experiments.add(tx, id=1, project=project, name="train", now_ms=1)
        tracked = await make_run(tx, project, 1, step=0)
        await write(tx, tracked, [Sample("m", 1.0, 1)])
        await runs.add_params(tx, tracked, (("lr", "1"),))
        uid = (await tracking.runs(tx, ALL))[0].uid
        for scope, n in ((Scope(projects=frozenset({other})), 0), (ALL, 1)):
            assert len(await tracking.experiments(tx, scope)) == n
            assert len(await tracking.runs(tx, scope)) == n
            assert len(await tracking.runs_of_run(tx, scope, RUN)) == n
            assert len(await tracking.metrics_of_run(tx, scope, RUN)) == n
            assert len(await tracking.params_of_run(tx, scope, RUN)) == n
            found = await histories.history(tx, scope, uid, "m", offset=0, limit=9)
            assert len(found) == n


async def test_lists_go_on_from_the_last_key(database: Database) -> None:
    async with database.transaction() as tx:
        project = await make_project(tx)
        for i in range(5):
            await experiments.add(tx, id=i + 1, project=project, name=f"e{i}", now_ms=1)
        for _ in range(5):
            await make_run(tx, project, 1)
        first = await tracking.experiments(tx, ALL, limit=3)
        rest = await tracking.experiments(tx, ALL, after=first[-1].key)
        assert [e.name for e in (*first, *rest)] == [f"e{i}" for i in range(5)]
        assert (first[0].runs, first[1].runs) == (5, 0)
        newest = await tracking.runs(tx, ALL, experiment=1, limit=3)
        older = await tracking.runs(tx, ALL, experiment=1, before=newest[-1].id)
        ids = [r.id for r in (*newest, *older)]
        assert ids == sorted(ids, reverse=True)
        assert len(ids) == 5


@pytest.mark.parametrize(
    ("limit", "expected"),
    [
        pytest.param(1, [99], id="one is the last"),
        pytest.param(2, [0, 99], id="two are the ends"),
        pytest.param(5, [0, 25, 50, 75, 99], id="five are spread evenly"),
        pytest.param(500, list(range(100)), id="more than there are is all"),
    ],
)
async def test_samples_are_spread_over_the_whole_length(
    database: Database, limit: int, expected: list[int]
) -> None:
    async with database.transaction() as tx:
        project = await make_project(tx)
        await experiments.add(tx, id=1, project=project, name="e", now_ms=1)
        tracked = await make_run(tx, project, 1)
        await write(tx, tracked, [Sample("m", 1.0, i, i) for i in range(100)])
        uid = (await tracking.runs(tx, ALL))[0].uid
        found = await histories.spread(tx, ALL, [uid], "m", steps=None, limit=limit)
        assert [point.step for _, point in found] == expected
        part = await histories.spread(tx, ALL, [uid], "m", steps=(10, 12), limit=limit)
        assert part[-1][1].step == 12
        assert all(10 <= point.step <= 12 for _, point in part)
