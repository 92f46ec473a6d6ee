"""The rig itself: every test starts with what migrations left, and nothing more."""

from __future__ import annotations

import pytest

from verderer.store.database import Database


@pytest.mark.parametrize("turn", [1, 2])
async def test_rows_of_one_test_are_gone_in_the_next(database: Database, turn: int) -> None:
    async with database.transaction() as tx:
        assert await tx.fetchval("SELECT count(*) FROM projects") == 0
        assert await tx.fetchval("SELECT count(*) FROM schema_migrations") >= 1
        await tx.execute("INSERT INTO projects (name) VALUES ('left-over')")


@pytest.mark.parametrize("turn", [1, 2])
async def test_rows_that_migrations_made_come_back(database: Database, turn: int) -> None:
    async with database.transaction() as tx:
        assert await tx.fetchval("SELECT count(*) FROM instance") == 1
        await tx.execute("DELETE FROM instance")
