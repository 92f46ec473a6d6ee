"""A person says that a cluster will not come back: what ran there is over."""

from __future__ import annotations

from verderer.core.access import Action, require
from verderer.core.errors import Conflict, NotFound
from verderer.core.model.actor import Actor
from verderer.core.model.attempt import End, EndCause
from verderer.core.model.cluster import OFFLINE_AFTER_S
from verderer.store.tables import audit, clusters
from verderer.usecases.agents.give_up import end_all_on
from verderer.usecases.context import Context


async def declare_lost(ctx: Context, actor: Actor, cluster_id: str) -> int:
    """End every attempt that is under way on a silent cluster; return how many.

    A silent cluster's work is unknown and never started elsewhere, since it may still run. Only
    somebody who knows that the machines are off, or cut off for good, can say otherwise: this is
    that word. Steps with retries left start again. An agent that comes back all the same stops
    what was given up here.

    Raises:
        NotAllowed: the actor is not a platform admin.
        NotFound: there is no such cluster.
        Conflict: its agent is heard.
    """
    require(actor, Action.CLUSTER_MANAGE)
    async with ctx.db.transaction() as tx:
        silent_s = await clusters.silence(tx, cluster_id)
        if silent_s is None:
            raise NotFound("no such cluster")
        if silent_s < OFFLINE_AFTER_S:
            raise Conflict(
                f"the agent of cluster {cluster_id} was heard {silent_s:.0f} s ago",
                hint="Cancel what runs there instead, or disable the cluster.",
                code="cluster_heard",
            )
        entry = audit.Entry(
            action="cluster.declared_lost",
            object=f"cluster:{cluster_id}",
            detail={"silent_s": round(silent_s)},
        )
        await audit.add(tx, actor, [entry])
    end = End(cause=EndCause.LOST, message=f"{actor.name} declared cluster {cluster_id} lost")
    return await end_all_on(ctx, cluster_id, end, origin=f"declared lost by {actor.name}"[:100])
