"""End everything that is under way on a cluster, in the name of whoever knows that it is over."""

from __future__ import annotations

from verderer.core.errors import Conflict
from verderer.core.model.actor import Actor, ActorKind
from verderer.core.model.attempt import AttemptKey, AttemptState, End
from verderer.store.tables.lost import fences, rewound
from verderer.usecases.agents.receive_report import Fact, receive_facts
from verderer.usecases.context import Context

_AT_ONCE = 500


async def end_all_on(ctx: Context, cluster_id: str, end: End, *, origin: str) -> int:
    """End its live attempts as lost and return how many; steps with retries left try again.

    An agent that comes back with one of them stops it: it is not among what it should run.
    """
    async with ctx.db.reading() as connection:
        found = await rewound.live_on(connection, cluster_id)
    if not found:
        return 0
    epoch = await _close(ctx, found[0]["id"], found[0]["epoch"])
    for first in range(0, len(found), _AT_ONCE):
        some = found[first : first + _AT_ONCE]
        agent = Actor(kind=ActorKind.AGENT, id=some[0]["id"], name=cluster_id, origin=origin)
        keys = [AttemptKey(row["run_id"], row["idx"], row["number"]) for row in some]
        facts = [Fact(key=key, state=AttemptState.LOST, end=end) for key in keys]
        await receive_facts(ctx, agent, epoch=epoch, facts=facts)
    return len(found)


async def _close(ctx: Context, cluster: int, epoch: int) -> int:
    """Without a new session its agent would never learn that all this is not wanted any more."""
    async with ctx.db.transaction() as tx:
        closed = await fences.close_session(tx, cluster, epoch, silent_s=0.0)
    if closed is None:
        raise Conflict("another agent speaks for this cluster now", code="stale_epoch")
    return closed
