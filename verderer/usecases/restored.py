"""A database that was restored is made fit for work, and says what became of it."""

from __future__ import annotations

from collections.abc import Mapping

from verderer.core.model.actor import Actor, ActorKind
from verderer.core.model.attempt import AttemptKey, AttemptState, End, EndCause
from verderer.store.tables import audit, rewound
from verderer.usecases.agents.receive_report import Fact, receive_facts
from verderer.usecases.context import Context

_OPERATOR = Actor(kind=ActorKind.SYSTEM, name="operator")
_GONE = End(
    cause=EndCause.LOST, message="its machine was restored from a backup that was made while it ran"
)
_AT_ONCE = 500


async def note_restored(ctx: Context, detail: Mapping[str, object]) -> None:
    """To be called once, before any server, scheduler or agent meets the database."""
    async with ctx.db.transaction() as tx:
        await rewound.move_ahead(tx)
        entry = audit.Entry(action="installation.restored", detail=dict(detail))
        await audit.add(tx, _OPERATOR, [entry])


async def give_up_attempts(ctx: Context, cluster_id: str) -> int:
    """End what ran on a cluster whose agent's memory is gone; return how many attempts.

    Such an agent could not know that it had started them, and would do it again under the same
    names. Steps with retries left get another attempt.
    """
    async with ctx.db.reading() as connection:
        found = await rewound.live_on(connection, cluster_id)
    for first in range(0, len(found), _AT_ONCE):
        some = found[first : first + _AT_ONCE]
        agent = Actor(kind=ActorKind.AGENT, id=some[0]["id"], name=cluster_id, origin="restore")
        keys = [AttemptKey(row["run_id"], row["idx"], row["number"]) for row in some]
        facts = [Fact(key=key, state=AttemptState.LOST, end=_GONE) for key in keys]
        await receive_facts(ctx, agent, epoch=some[0]["epoch"], facts=facts)
    return len(found)
