"""End everything that is under way on a cluster, in the name of whoever knows that it is over."""

from __future__ import annotations

from verderer.core.model.actor import Actor, ActorKind
from verderer.core.model.attempt import AttemptKey, AttemptState, End
from verderer.store.tables.lost import rewound
from verderer.usecases.agents.receive_report import Fact, receive_facts
from verderer.usecases.context import Context

_AT_ONCE = 500


async def end_all_on(ctx: Context, cluster_id: str, end: End, *, origin: str) -> int:
    """End its live attempts as lost and return how many; steps with retries left try again.

    An agent that comes back with one of them stops it: it is not among what it should run.
    """
    async with ctx.db.reading() as connection:
        found = await rewound.live_on(connection, cluster_id)
    for first in range(0, len(found), _AT_ONCE):
        some = found[first : first + _AT_ONCE]
        agent = Actor(kind=ActorKind.AGENT, id=some[0]["id"], name=cluster_id, origin=origin)
        keys = [AttemptKey(row["run_id"], row["idx"], row["number"]) for row in some]
        facts = [Fact(key=key, state=AttemptState.LOST, end=end) for key in keys]
        await receive_facts(ctx, agent, epoch=some[0]["epoch"], facts=facts)
    return len(found)
