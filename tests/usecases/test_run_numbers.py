"""Runs of one millisecond that draw the same number."""

from __future__ import annotations

import random
from dataclasses import replace
from datetime import UTC, datetime

from tests.usecases.world import ADMIN, World
from verderer.store.database import Database
from verderer.usecases.submit_run import Submission, Submitted, Submitter

ONE = b"metadata: {name: one}\nsteps:\n  - {name: a, command: [x]}\n"
NOW = datetime(2026, 1, 1, tzinfo=UTC)


async def _submit(database: Database, numbers: list[int], *, together: bool) -> list[Submitted]:
    """Submit three runs, drawing `numbers` first."""
    world = await World.make(database)
    drawn = iter(numbers)
    ctx = replace(world.ctx, clock=lambda: NOW, chance=lambda: next(drawn, random.getrandbits(64)))
    submitter = Submitter(ctx)
    one = [Submission(document=ONE, project="demo", idempotency_key=f"k{i}") for i in range(3)]
    if together:
        answers = await submitter.submit_all(ADMIN, one)
    else:
        answers = [await submitter.submit(ADMIN, submission) for submission in one]
    made = [answer for answer in answers if isinstance(answer, Submitted)]
    assert answers == made
    return made


async def test_those_of_one_batch_are_told_apart_before_they_are_written(
    database: Database,
) -> None:
    made = await _submit(database, [7, 7, 7], together=True)
    assert len({one.run for one in made}) == 3
    async with database.reading() as tx:
        written = await tx.fetchval("SELECT count(DISTINCT xmin::text) FROM runs")
    assert written == 1, "in one transaction, not each alone"


async def test_one_that_was_written_before_keeps_its_number(database: Database) -> None:
    made = await _submit(database, [7, 7, 7], together=False)
    assert len({one.run for one in made}) == 3
