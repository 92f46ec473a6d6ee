"""Brings a database to the schema of this release.

Files are `sql/migrations/NNNN_{pre,post}_words.sql`, each applied once, in one transaction, in
order, under one advisory lock. `pre` may run while the last release still serves; `post` (drop,
tighten) only after it is gone. A `pre` one may come to a database that lacks a `post` one of a
lower number, so neither relies on the other.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import asyncpg

from verderer.core.errors import Conflict
from verderer.store.connecting import NOT_CONNECTED, not_connected, refuse_old
from verderer.store.database import Tx

_FOLDER = Path(__file__).parent / "sql" / "migrations"
_NAME = re.compile(r"(\d{4})_(pre|post)_([a-z0-9_]+)\.sql")
_LOCK = 7_205_759_403_792_794  # any number that nobody else takes
_TABLE = """
    CREATE TABLE IF NOT EXISTS schema_migrations (
        number     integer PRIMARY KEY,
        name       text NOT NULL,
        sha256     text NOT NULL,
        applied_at timestamptz NOT NULL DEFAULT now())
"""
_OTHERS = """
    SELECT DISTINCT application_name AS name, host(client_addr) AS host
      FROM pg_stat_activity
     WHERE datname = current_database() AND application_name LIKE 'verderer-%'
       AND application_name <> 'verderer-doctor'
       AND right(application_name, length($1)) <> $1
     ORDER BY 1, 2
"""


@dataclass(frozen=True, slots=True)
class Migration:
    """One file."""

    number: int
    name: str
    sql: str

    @property
    def post(self) -> bool:
        """It waits until nothing of the last release runs any more."""
        return "_post_" in self.name[:10]

    @property
    def sha256(self) -> str:
        return hashlib.sha256(self.sql.encode()).hexdigest()


def migrations(folder: Path = _FOLDER) -> list[Migration]:
    """All files, in order.

    Raises:
        ValueError: a name does not follow the pattern, or a number is taken twice.
    """
    found = []
    for path in sorted(folder.glob("*.sql")):
        if not (match := _NAME.fullmatch(path.name)):
            raise ValueError(f"a migration is called NNNN_pre_words.sql, not {path.name}")
        found.append(Migration(int(match[1]), path.stem, path.read_text(encoding="utf-8")))
    if len({m.number for m in found}) != len(found):
        raise ValueError("two migrations have the same number")
    return found


async def migrate(dsn: str, *, post: bool = True, ours: str = "") -> list[str]:
    """Apply what is missing and return its names. Safe to run from many processes at once.

    Without `post`, only what the last release can live with; an empty database gets everything.
    `ours` is what the processes of this release call themselves at the end of their connections'
    names: where it is given, `post` is refused while others are connected.

    Raises:
        Refusal: the address, the login or the database is wrong, or the server is too old.
        Fault: PostgreSQL cannot be reached.
        Conflict: the database is of a newer release, an applied file was changed since, or
            processes of another release are connected (`old_release`).
    """
    try:
        connection = await asyncpg.connect(dsn, timeout=15)
    except NOT_CONNECTED as e:
        raise not_connected(e, dsn) from e
    try:
        version = await connection.fetchval("SELECT current_setting('server_version_num')::int")
        refuse_old(version, dsn)
        return await _apply(connection, migrations(), post=post, ours=ours)
    finally:
        await connection.close()


async def _apply(
    connection: asyncpg.Connection[Any], wanted: list[Migration], *, post: bool, ours: str
) -> list[str]:
    async with _alone(connection):
        await connection.execute(_TABLE)
        rows = await connection.fetch("SELECT number, name, sha256 FROM schema_migrations")
    _refuse_other(rows, wanted)
    done = {row["number"] for row in rows}
    todo = [m for m in wanted if m.number not in done and (post or not done or not m.post)]
    if ours and done and any(m.post for m in todo):
        await _refuse_old_processes(connection, ours)
    return [one.name for one in todo if await _apply_one(connection, one)]


async def _refuse_old_processes(connection: asyncpg.Connection[Any], ours: str) -> None:
    rows = await connection.fetch(_OTHERS, ours)
    if not rows:
        return
    names = ", ".join(f"{row['name']} at {row['host'] or 'this machine'}" for row in rows[:5])
    raise Conflict(
        f"processes of another release are connected: {names}",
        hint="Stop or upgrade them, then run `verderer migrate --post` again.",
        code="old_release",
    )


def _refuse_other(rows: list[asyncpg.Record], wanted: list[Migration]) -> None:
    ours = {migration.number: migration for migration in wanted}
    for row in sorted(rows, key=lambda row: -row["number"]):
        if row["number"] not in ours:
            raise Conflict(
                f"the database has migration {row['name']}, which this release lacks",
                hint="Start the newer release, or restore a backup of before the upgrade.",
            )
        if row["sha256"] != ours[row["number"]].sha256:
            raise Conflict(
                f"migration {row['name']} was changed after it was applied",
                hint="Install this release afresh, or go on with the release that applied it.",
            )


async def _apply_one(connection: asyncpg.Connection[Any], migration: Migration) -> bool:
    """Return whether it was us: another process may have been quicker."""
    async with _alone(connection):
        there = "SELECT EXISTS (SELECT FROM schema_migrations WHERE number = $1)"
        if await connection.fetchval(there, migration.number):
            return False
        await connection.execute(migration.sql)
        await connection.execute(
            "INSERT INTO schema_migrations (number, name, sha256) VALUES ($1, $2, $3)",
            migration.number,
            migration.name,
            migration.sha256,
        )
        return True


@asynccontextmanager
async def _alone(connection: asyncpg.Connection[Any]) -> AsyncIterator[None]:
    """A transaction while which nobody else migrates; nothing of it outlives it in the session."""
    async with connection.transaction():
        await connection.execute("SELECT pg_advisory_xact_lock($1)", _LOCK)
        await connection.execute("SET LOCAL client_min_messages = warning")
        yield


async def missing(tx: Tx) -> list[str]:
    """Names of the migrations without which this release cannot work; changes nothing."""
    return [m.name for m in await _lacked(tx) if not m.post]


async def missing_post(tx: Tx) -> list[str]:
    """Names of those that wait until the last release is gone; changes nothing."""
    return [m.name for m in await _lacked(tx) if m.post]


async def _lacked(tx: Tx) -> list[Migration]:
    if not await tx.fetchval("SELECT to_regclass('schema_migrations') IS NOT NULL"):
        return migrations()
    done = {row["number"] for row in await tx.fetch("SELECT number FROM schema_migrations")}
    return [m for m in migrations() if m.number not in done]
