"""Lists of runs: filters find what they say, pages join without a gap, projects stay apart."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import dataclass
from datetime import UTC, datetime

import pytest

from tests.web.seed import fill
from verderer.core.model.actor import Scope
from verderer.core.model.ids import run_id_text
from verderer.core.model.run import RunState
from verderer.store.database import Database, Tx
from verderer.store.views.overview import overview
from verderer.store.views.runs import (
    RunFilter,
    RunRow,
    get_run,
    list_events,
    list_runs,
    run_counts,
)

EVERYTHING = Scope(everything=True)


@dataclass
class Seeded:
    tx: Tx
    runs: dict[str, int]
    ana: Scope
    """The projects `demo` and `vision`."""


@pytest.fixture
async def seeded(database: Database) -> AsyncIterator[Seeded]:
    async with database.transaction() as tx:
        made = await fill(tx, now=datetime.now(UTC), history=60)
        rows = await tx.fetch("SELECT id FROM projects WHERE name IN ('demo', 'vision')")
        yield Seeded(tx, made, Scope(projects=frozenset(r["id"] for r in rows)))


async def every(seeded: Seeded, scope: Scope, wanted: RunFilter, limit: int) -> list[RunRow]:
    """All pages, joined."""
    rows: list[RunRow] = []
    before = None
    for _ in range(200):
        page = await list_runs(seeded.tx, scope, wanted, before=before, limit=limit)
        assert len(page.rows) <= limit
        rows += page.rows
        before = page.before
        if before is None:
            return rows
    raise AssertionError("the pages do not end")


FILTERS = [
    pytest.param(RunFilter(), lambda r: True, id="all"),
    pytest.param(RunFilter(project="llm"), lambda r: r.project == "llm", id="one project"),
    pytest.param(
        RunFilter(states=frozenset({RunState.FAILED, RunState.RUNNING})),
        lambda r: r.state in {RunState.FAILED, RunState.RUNNING},
        id="two states",
    ),
    pytest.param(RunFilter(name="digits"), lambda r: r.name == "digits", id="the whole name"),
    pytest.param(RunFilter(text="EVAL"), lambda r: "eval" in r.name, id="part of the name"),
    pytest.param(
        RunFilter(labels=(("team", "nlp"),)), lambda r: r.labels.get("team") == "nlp", id="label"
    ),
    pytest.param(RunFilter(actor="wei"), lambda r: "wei@" in r.actor, id="who"),
    pytest.param(
        RunFilter(name="digits", states=frozenset({RunState.FAILED}), actor="ana"),
        lambda r: r.name == "digits" and r.state == RunState.FAILED and "ana@" in r.actor,
        id="several at once",
    ),
]


@pytest.mark.parametrize("limit", [1, 7, 500])
@pytest.mark.parametrize("oldest", [False, True])
@pytest.mark.parametrize(("wanted", "keep"), FILTERS)
async def test_pages_join_to_what_the_filter_says(
    seeded: Seeded, wanted: RunFilter, keep: object, limit: int, oldest: bool
) -> None:
    assert callable(keep)
    for scope in (EVERYTHING, seeded.ana):
        full = [row for row in await every(seeded, scope, RunFilter(), 500) if keep(row)]
        ordered = RunFilter(
            **{n: getattr(wanted, n) for n in wanted.__dataclass_fields__}
            | {"oldest_first": oldest}
        )
        found = await every(seeded, scope, ordered, limit)
        assert [r.id for r in found] == sorted((r.id for r in full), reverse=not oldest)


async def test_a_cluster_finds_the_runs_that_were_there(seeded: Seeded) -> None:
    found = await every(seeded, EVERYTHING, RunFilter(cluster="proj-b-tpu"), 5)
    assert [row.name for row in found] == ["pretrain-tpu"]


async def test_an_id_finds_its_run_and_nobody_elses(seeded: Seeded) -> None:
    secret = RunFilter(text=run_id_text(seeded.runs["llm-finetune"]).upper())
    page = await list_runs(seeded.tx, EVERYTHING, secret)
    assert [row.name for row in page.rows] == ["llm-finetune"]
    assert (await list_runs(seeded.tx, seeded.ana, secret)).rows == ()


@pytest.mark.parametrize("project", ["llm", "absent"])
async def test_a_foreign_project_is_as_empty_as_one_that_is_not(
    seeded: Seeded, project: str
) -> None:
    page = await list_runs(seeded.tx, seeded.ana, RunFilter(project=project))
    assert page.rows == ()
    assert page.before is None


async def test_nobody_outside_reads_a_run(seeded: Seeded) -> None:
    run = seeded.runs["llm-finetune"]
    assert await get_run(seeded.tx, seeded.ana, run) is None
    assert await list_events(seeded.tx, seeded.ana, run) == []
    found = await get_run(seeded.tx, EVERYTHING, run)
    assert found is not None
    assert "torchrun" in found.document


async def test_counts_come_from_the_counters(seeded: Seeded) -> None:
    counts = await run_counts(seeded.tx, EVERYTHING)
    listed = await every(seeded, EVERYTHING, RunFilter(), 500)
    for state in RunState:
        assert counts[state] == sum(row.state == state for row in listed)
    assert sum((await run_counts(seeded.tx, seeded.ana, "llm")).values()) == 0


async def test_the_overview_shows_a_reader_their_own_alone(seeded: Seeded) -> None:
    now = datetime.now(UTC)
    mine = await overview(seeded.tx, seeded.ana, now=now)
    assert {row.project for row in mine.running} == {"vision"}
    assert sum(group.steps for group in mine.waiting) == 74
    everything = await overview(seeded.tx, EVERYTHING, now=now)
    assert sum(group.steps for group in everything.waiting) == 75
    assert [s.cluster.cluster_id for s in everything.silent] == ["proj-b-tpu"]
    assert everything.silent[0].unknown == 1
