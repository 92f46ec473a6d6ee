"""Receive why a cluster lets attempts wait. An explanation, not a state: it leaves no audit."""

from __future__ import annotations

from collections.abc import Mapping

from verderer.core.errors import Conflict
from verderer.core.model.actor import Actor
from verderer.core.model.attempt import AttemptKey
from verderer.core.model.waiting import Waiting
from verderer.store.tables import clusters, waits
from verderer.usecases.context import Context


async def receive_waits(
    ctx: Context, actor: Actor, *, epoch: int, told: Mapping[AttemptKey, Waiting | None]
) -> None:
    """Keep the newest reason of each attempt of the actor's cluster. Safe to repeat.

    None: an attempt does not wait any more.

    Raises:
        Conflict: `stale_epoch`.
    """
    async with ctx.db.transaction() as tx:
        if not await clusters.holds_epoch(tx, actor.id, epoch):
            raise Conflict("another agent speaks for this cluster now", code="stale_epoch")
        runs = await waits.put(tx, actor.id, told)
    ctx.wakeups.wake({f"run:{run}" for run in runs})
