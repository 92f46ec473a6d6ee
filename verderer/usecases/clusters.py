"""Give a cluster's agent the credential that it dials in with; take a cluster out of use."""

from __future__ import annotations

from verderer.core.access import Action, require
from verderer.core.credentials import TokenKind, hash_token, make_token
from verderer.core.errors import Conflict, NotFound
from verderer.core.labels import check_name
from verderer.core.model.actor import Actor
from verderer.store.tables import audit, clusters
from verderer.usecases.context import Context


async def create_cluster_credential(ctx: Context, actor: Actor, cluster_id: str, kind: str) -> str:
    """Make the cluster if there is none, and a new credential for its agent.

    The credential is shown this once. An earlier one stops working at once. `kind` is
    `kubernetes`, `slurm` or `local`.

    Raises:
        NotAllowed: the actor is not a platform admin.
        Invalid: `cluster_id` is not a name.
        Conflict: there is a cluster of that name and of another kind.
    """
    require(actor, Action.CLUSTER_MANAGE)
    check_name(cluster_id, field="cluster_id")
    token = make_token(TokenKind.AGENT, ctx.secret())
    async with ctx.db.transaction() as tx:
        if await clusters.put(tx, cluster_id, kind, hash_token(token)) is None:
            raise Conflict(f"cluster {cluster_id} exists and is not of kind {kind}")
        entry = audit.Entry(
            action="cluster.credential_made", object=f"cluster:{cluster_id}", detail={"kind": kind}
        )
        await audit.add(tx, actor, [entry])
    ctx.wakeups.wake(["auth"])
    return token


async def set_cluster_enabled(
    ctx: Context, actor: Actor, cluster_id: str, *, enabled: bool
) -> None:
    """Take a cluster out of use, or let it have work again; what runs there goes on.

    Nothing happens when it is so already.

    Raises:
        NotAllowed: the actor is not a platform admin.
        NotFound: there is no such cluster.
    """
    require(actor, Action.CLUSTER_MANAGE)
    async with ctx.db.transaction() as tx:
        changed = await clusters.set_enabled(tx, cluster_id, enabled=enabled)
        if changed is None:
            raise NotFound("no such cluster")
        if changed:
            action = "cluster.enabled" if enabled else "cluster.disabled"
            await audit.add(tx, actor, [audit.Entry(action=action, object=f"cluster:{cluster_id}")])
    if changed:
        ctx.wakeups.wake(["clusters", "queue"])
