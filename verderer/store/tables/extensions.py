"""What the database server itself can be made to do for us."""

from __future__ import annotations

import asyncpg

from verderer.store.database import Tx

_STATEMENTS = "CREATE EXTENSION IF NOT EXISTS pg_stat_statements"


async def add_statements(tx: Tx) -> bool:
    """Create pg_stat_statements in our database; False when the server does not let us."""
    try:
        async with tx.transaction():
            await tx.execute(_STATEMENTS)
    except asyncpg.PostgresError:
        return False
    return True
