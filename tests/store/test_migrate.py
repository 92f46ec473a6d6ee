"""Two phases of a migration: what the last release can live with, and what comes after it."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterator

import asyncpg
import pytest

from tests.rig.postgres import own_database
from verderer.core.errors import Conflict
from verderer.store import migrate as module
from verderer.store.database import Database
from verderer.store.migrate import Migration, migrate, migrations

OLD = [Migration(1, "0001_pre_one", "CREATE TABLE one (a int)")]
NEW = [
    *OLD,
    Migration(2, "0002_pre_two", "CREATE TABLE two (b int)"),
    Migration(3, "0003_post_three", "DROP TABLE one"),
    Migration(4, "0004_pre_four", "CREATE TABLE four (d int)"),
]
# What must not be in a `pre` file: the last release would miss it, or be kept waiting by it.
HARSH = re.compile(r"\bDROP\s+(TABLE|COLUMN|TYPE)|\bRENAME\b|\bSET\s+NOT\s+NULL|\bALTER\s+TYPE\b")


@pytest.fixture
def dsn() -> Iterator[str]:
    with own_database() as address:
        asyncio.run(_empty(address))
        yield address


async def _empty(dsn: str) -> None:
    connection = await asyncpg.connect(dsn)
    try:
        await connection.execute("DROP SCHEMA public CASCADE; CREATE SCHEMA public")
    finally:
        await connection.close()


async def applied(dsn: str, monkeypatch: pytest.MonkeyPatch, known: list[Migration], **how: object):
    with monkeypatch.context() as patched:
        patched.setattr(module, "migrations", lambda: known)
        return await migrate(dsn, **how)  # type: ignore[arg-type]


async def test_what_the_last_release_needs_stays_until_asked(
    dsn: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert await applied(dsn, monkeypatch, OLD) == ["0001_pre_one"]
    before = await applied(dsn, monkeypatch, NEW, post=False)
    assert before == ["0002_pre_two", "0004_pre_four"]
    assert await applied(dsn, monkeypatch, NEW, post=False) == []
    assert await applied(dsn, monkeypatch, NEW, post=True) == ["0003_post_three"]


async def test_an_empty_database_gets_everything_at_once(
    dsn: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert len(await applied(dsn, monkeypatch, NEW, post=False)) == 4


async def test_an_old_process_that_is_connected_is_named(
    dsn: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    await applied(dsn, monkeypatch, OLD)
    await applied(dsn, monkeypatch, NEW, post=False)
    old = await Database.open(dsn, size=1, application="verderer-server/0.1")
    ours = await Database.open(dsn, size=1, application="verderer-scheduler/0.2")
    try:
        with pytest.raises(Conflict, match=r"verderer-server/0\.1") as refused:
            await applied(dsn, monkeypatch, NEW, post=True, ours="/0.2")
        assert refused.value.code == "old_release"
        assert "scheduler" not in refused.value.message
    finally:
        await old.close()
        await ours.close()
    await asyncio.sleep(0.1)
    assert await applied(dsn, monkeypatch, NEW, post=True, ours="/0.2") == ["0003_post_three"]


async def test_this_release_works_without_its_post_migrations(dsn: str) -> None:
    """Its own tables are there, and it says what waits."""
    with pytest.MonkeyPatch.context() as patched:
        known = [m for m in migrations() if not m.post]
        patched.setattr(module, "migrations", lambda: known)
        await migrate(dsn)
    connection = await asyncpg.connect(dsn)
    try:
        assert await module.missing(connection) == []
        assert await module.missing_post(connection) == [m.name for m in migrations() if m.post]
    finally:
        await connection.close()


@pytest.mark.parametrize("one", [m for m in migrations() if not m.post], ids=lambda m: m.name)
def test_what_comes_before_takes_nothing_away(one: Migration) -> None:
    sql = re.sub(r"--.*", "", one.sql)
    assert not HARSH.search(sql)
