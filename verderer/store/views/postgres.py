"""The server itself: what a doctor wants to know of PostgreSQL."""

from __future__ import annotations

from dataclasses import dataclass

from verderer.core.model.actor import Scope
from verderer.store.database import Tx

_FACTS = """
    SELECT current_setting('server_version_num')::int AS version,
           current_setting('server_version') AS version_text,
           current_setting('max_connections')::int AS max_connections,
           (SELECT count(*)::int FROM pg_stat_activity
             WHERE backend_type = 'client backend') AS connections,
           EXISTS (SELECT FROM pg_extension WHERE extname = 'pg_stat_statements') AS statements
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class PostgresFacts:
    """What it says of itself."""

    version: int
    """150004 is 15.4."""
    version_text: str
    max_connections: int
    connections: int
    """Open now, of all databases."""
    statements: bool
    """The extension pg_stat_statements is there."""


async def postgres_facts(tx: Tx, scope: Scope) -> PostgresFacts:
    """Ask the server; it says nothing about any project, so `scope` hides none of it."""
    del scope
    row = await tx.fetchrow(_FACTS)
    assert row is not None  # noqa: S101 - it has no FROM
    return PostgresFacts(**dict(row))
