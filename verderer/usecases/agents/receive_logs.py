"""Receive the news that log chunks exist."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from verderer.core.errors import Conflict
from verderer.core.model.actor import Actor
from verderer.core.model.attempt import AttemptKey
from verderer.store.tables import clusters, results
from verderer.usecases.context import Context


@dataclass(frozen=True, slots=True, kw_only=True)
class Chunk:
    """A chunk object that was written, or written again because it grew."""

    key: AttemptKey
    replica: int
    sequence: int
    first_byte: int
    size: int
    lines: int
    lost: int
    first_at: datetime | None
    last_at: datetime | None
    sealed: bool
    complete: bool


async def receive_chunks(
    ctx: Context, actor: Actor, *, epoch: int, chunks: Sequence[Chunk]
) -> None:
    """Record chunks of attempts that were given to the actor's cluster. Safe to repeat.

    Raises:
        Conflict: `stale_epoch`.
    """
    newest = {(c.key, c.replica, c.sequence): c for c in chunks}
    rows = [
        (
            c.key.run,
            c.key.step,
            c.key.number,
            c.replica,
            c.sequence,
            c.first_byte,
            c.size,
            c.lines,
            c.lost,
            c.first_at,
            c.last_at,
            c.sealed,
            c.complete,
        )
        for c in newest.values()
    ]
    async with ctx.db.transaction() as tx:
        if not await clusters.holds_epoch(tx, actor.id, epoch):
            raise Conflict("another agent speaks for this cluster now", code="stale_epoch")
        await results.put_chunks(tx, actor.id, rows)
    ctx.wakeups.wake({f"log:{c.key.run}:{c.key.step}" for c in newest.values()})
