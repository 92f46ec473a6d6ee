"""Look the database over for a doctor; nothing is changed."""

from __future__ import annotations

from dataclasses import dataclass

from verderer.core.model.actor import Scope
from verderer.store import migrate
from verderer.store.database import Database
from verderer.store.views.postgres import PostgresFacts, postgres_facts
from verderer.store.views.why import scheduler_gone_s


@dataclass(frozen=True, slots=True, kw_only=True)
class DatabaseFacts(PostgresFacts):
    """What the server says of itself, and how our schema stands in it."""

    missing: tuple[str, ...]
    """Migrations that it lacks."""
    scheduler_gone_s: float | None
    """Seconds since a scheduler led last; negative while one leads, None: never."""


async def examine_database(dsn: str) -> DatabaseFacts:
    """Connect and ask.

    Raises:
        Fault: it cannot be reached or refuses the credentials.
    """
    db = await Database.open(dsn, size=2, application="verderer-doctor")
    try:
        missing = tuple(await migrate.missing(dsn))
        async with db.reading() as tx:
            facts = await postgres_facts(tx, Scope(everything=True))
            gone = None if missing else await scheduler_gone_s(tx, Scope(everything=True))
    finally:
        await db.close()
    return DatabaseFacts(
        version=facts.version,
        version_text=facts.version_text,
        max_connections=facts.max_connections,
        connections=facts.connections,
        statements=facts.statements,
        missing=missing,
        scheduler_gone_s=gone,
    )
