"""Lock a cluster's agent out, and take a cluster out for good."""

from __future__ import annotations

from verderer.core.access import Action, require
from verderer.core.errors import Conflict, NotFound
from verderer.core.model.actor import Actor
from verderer.store.database import Tx
from verderer.store.tables import audit, enrolment
from verderer.usecases.context import Context


async def revoke_agent(ctx: Context, actor: Actor, cluster_id: str) -> None:
    """Lock the cluster's agent out at once; what runs there goes on until it is let in again.

    A join token that nobody has used yet opens nothing any more either.

    Raises:
        NotFound: there is no such cluster, or nothing opens it.
    """
    require(actor, Action.CLUSTER_MANAGE)
    async with ctx.db.transaction() as tx:
        cluster = await _lock_out(tx, actor, cluster_id, must=True)
    ctx.wakeups.wake({"auth", "clusters", f"cluster:{cluster}"})


async def retire_cluster(ctx: Context, actor: Actor, cluster_id: str) -> None:
    """Take a cluster out of use for good: its agent is locked out, lists show it no more.

    Runs that ran there keep saying so. Inviting an agent under the same id takes it back in.

    Raises:
        NotFound: there is no such cluster.
        Conflict: attempts are under way there.
    """
    require(actor, Action.CLUSTER_MANAGE)
    async with ctx.db.transaction() as tx:
        cluster = await _lock_out(tx, actor, cluster_id, must=False)
        await enrolment.retire(tx, cluster_id)
        if live := await enrolment.live_attempts(tx, cluster_id):
            raise Conflict(
                f"{live} attempts are under way on cluster {cluster_id}",
                hint="Cancel them, or declare the cluster lost if it will not come back.",
                code="cluster_busy",
            )
        entry = audit.Entry(action="cluster.retired", object=f"cluster:{cluster_id}")
        await audit.add(tx, actor, [entry])
    ctx.wakeups.wake({"auth", "clusters", "queue", f"cluster:{cluster}"})


async def _lock_out(tx: Tx, actor: Actor, cluster_id: str, *, must: bool) -> int:
    dropped = await enrolment.drop_credentials(tx, cluster_id)
    if dropped is None:
        raise NotFound("no such cluster")
    cluster, taken = dropped
    tokens = await enrolment.forget_join_tokens(tx, cluster)
    done = [
        *(["cluster.credential_revoked"] if taken else []),
        *(["cluster.join_token_revoked"] if tokens else []),
    ]
    entries = [audit.Entry(action=action, object=f"cluster:{cluster_id}") for action in done]
    await audit.add(tx, actor, entries)
    if must and not entries:
        raise NotFound(f"cluster {cluster_id} has neither an agent nor a join token to revoke")
    return cluster
