"""A database that was restored is made fit for work, and says what became of it."""

from __future__ import annotations

from collections.abc import Mapping

from verderer.core.model.actor import Actor, ActorKind
from verderer.core.model.attempt import End, EndCause
from verderer.store.tables import audit
from verderer.store.tables.lost import rewound
from verderer.usecases.agents.give_up import end_all_on
from verderer.usecases.context import Context

_OPERATOR = Actor(kind=ActorKind.SYSTEM, name="operator")
_GONE = End(
    cause=EndCause.LOST, message="its machine was restored from a backup that was made while it ran"
)


async def note_restored(ctx: Context, detail: Mapping[str, object]) -> None:
    """To be called once, before any server, scheduler or agent meets the database."""
    async with ctx.db.transaction() as tx:
        await rewound.move_ahead(tx)
        entry = audit.Entry(action="installation.restored", detail=dict(detail))
        await audit.add(tx, _OPERATOR, [entry])


async def give_up_attempts(ctx: Context, cluster_id: str) -> int:
    """End what ran on a cluster whose agent's memory is gone; return how many attempts.

    Such an agent could not know that it had started them, and would do it again under the same
    names.
    """
    return await end_all_on(ctx, cluster_id, _GONE, origin="restore")
