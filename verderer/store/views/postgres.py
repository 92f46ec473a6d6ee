"""The server itself: what a doctor wants to know of PostgreSQL."""

from __future__ import annotations

from dataclasses import dataclass

import asyncpg

from verderer.core.model.actor import Scope
from verderer.store.database import Tx

_FACTS = """
    SELECT current_setting('server_version_num')::int AS version,
           current_setting('server_version') AS version_text,
           current_setting('max_connections')::int AS max_connections,
           (SELECT count(*)::int FROM pg_stat_activity
             WHERE backend_type = 'client backend') AS connections,
           current_setting('fsync')::boolean AND current_setting('full_page_writes')::boolean
               AND current_setting('synchronous_commit') <> 'off' AS durable,
           extract(epoch FROM clock_timestamp())::float8 AS unix_s,
           EXISTS (SELECT FROM pg_extension WHERE extname = 'pg_stat_statements') AS statements,
           EXISTS (SELECT FROM pg_extension WHERE extname = 'pg_cron') AS cron
"""
_SLOW = """
    SELECT s.query, s.calls, s.mean_exec_time AS mean_ms
      FROM pg_stat_statements AS s JOIN pg_database AS d ON d.oid = s.dbid
     WHERE d.datname = current_database() AND s.calls >= $1 AND s.mean_exec_time >= $2
     ORDER BY s.total_exec_time DESC LIMIT $3
"""
_LONG = """
    SELECT coalesce(max(extract(epoch FROM now() - xact_start)), 0)::float8
      FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()
"""
_NOT_READABLE = (
    asyncpg.UndefinedTableError,
    asyncpg.InsufficientPrivilegeError,
    asyncpg.ObjectNotInPrerequisiteStateError,  # the library is not preloaded
)


@dataclass(frozen=True, slots=True, kw_only=True)
class PostgresFacts:
    """What it says of itself."""

    version: int
    """150004 is 15.4."""
    version_text: str
    max_connections: int
    connections: int
    """Open now, of all databases."""
    durable: bool
    """A committed transaction survives a power cut."""
    unix_s: float
    """Its wall clock."""
    statements: bool
    """The extension pg_stat_statements is there."""
    cron: bool
    """The extension pg_cron is there."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SlowStatement:
    """One that takes long every time."""

    query: str
    calls: int
    mean_ms: float


async def postgres_facts(tx: Tx, scope: Scope) -> PostgresFacts:
    """Ask the server; it says nothing about any project, so `scope` hides none of it."""
    del scope
    row = await tx.fetchrow(_FACTS)
    assert row is not None  # noqa: S101 - it has no FROM
    return PostgresFacts(**dict(row))


async def slow_statements(
    tx: Tx, scope: Scope, *, calls: int, mean_ms: float, most: int
) -> tuple[SlowStatement, ...] | None:
    """Those that ran `calls` times or more and took `mean_ms` or more on average.

    The costliest first; None when nobody counts, or when we may not read it.
    """
    del scope
    try:
        async with tx.transaction():
            rows = await tx.fetch(_SLOW, calls, mean_ms, most)
    except _NOT_READABLE:
        return None
    return tuple(SlowStatement(**dict(row)) for row in rows)


async def oldest_transaction_s(tx: Tx, scope: Scope) -> float:
    """Age in seconds of the oldest transaction of others in our database."""
    del scope
    return float(await tx.fetchval(_LONG))
