"""Look the database over for a doctor, and mend what it can mend."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Final

from verderer.core.model.actor import Scope
from verderer.store import migrate
from verderer.store.database import Database
from verderer.store.tables.extensions import add_statements
from verderer.store.views.postgres import (
    PostgresFacts,
    SlowStatement,
    oldest_transaction_s,
    postgres_facts,
    slow_statements,
)
from verderer.store.views.why import scheduler_gone_s

SLOW_MS: Final = 100.0
_OFTEN: Final = 20
_MOST: Final = 3
_ALL = Scope(everything=True)


@dataclass(frozen=True, slots=True, kw_only=True)
class DatabaseFacts:
    """What the server says of itself, and how our schema stands in it."""

    server: PostgresFacts
    ahead_s: float
    """How far its clock is ahead of this machine's; negative: behind."""
    slow: tuple[SlowStatement, ...] | None
    """None: nobody counts, or we may not read it."""
    oldest_transaction_s: float
    missing: tuple[str, ...]
    """Migrations that it lacks."""
    missing_post: tuple[str, ...]
    """Those that wait until nothing of the last release runs any more."""
    scheduler_gone_s: float | None
    """Seconds since a scheduler led last; negative while one leads, None: never."""


async def examine_database(dsn: str, *, fix: bool = False) -> DatabaseFacts:
    """Connect and ask. `fix` turns pg_stat_statements on where the server allows it.

    Raises:
        Refusal, Fault: as `Database.open`.
    """
    db = await Database.open(dsn, size=2, application="verderer-doctor")
    try:
        if fix:
            async with db.transaction() as tx:
                await add_statements(tx)
        async with db.reading() as tx:
            missing = tuple(await migrate.missing(tx))
            waiting = tuple(await migrate.missing_post(tx))
            server = await postgres_facts(tx, _ALL)
            return DatabaseFacts(
                server=server,
                ahead_s=server.unix_s - time.time(),
                slow=await slow_statements(tx, _ALL, calls=_OFTEN, mean_ms=SLOW_MS, most=_MOST),
                oldest_transaction_s=await oldest_transaction_s(tx, _ALL),
                missing=missing,
                missing_post=waiting,
                scheduler_gone_s=None if missing else await scheduler_gone_s(tx, _ALL),
            )
    finally:
        await db.close()
