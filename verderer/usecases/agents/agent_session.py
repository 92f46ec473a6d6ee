"""An agent's session: it says hello, is heard from time to time, and describes its nodes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from verderer.core.errors import Conflict, NotFound
from verderer.core.fencing import MAX_STOPS_WITHIN_S
from verderer.core.model.actor import Actor
from verderer.core.model.cluster import CheckReport, NodeReport, unfit_by
from verderer.store.tables import audit, checks, clusters
from verderer.store.tables.lost import fences
from verderer.usecases.context import Context


async def hello(
    ctx: Context,
    actor: Actor,
    *,
    instance: str,
    version: str,
    stops_within_s: float | None = None,
) -> int:
    """Open a session and return its epoch; from now on earlier sessions are refused.

    `stops_within_s` is what the agent promises about leased work, see `core.fencing`. A cluster
    that was taken out of use is let in: what still runs there has to be reported.

    Raises:
        NotFound: the cluster is gone.
    """
    if stops_within_s is not None and not 0 <= stops_within_s <= MAX_STOPS_WITHIN_S:
        stops_within_s = None
    async with ctx.db.transaction() as tx:
        epoch = await clusters.hello(tx, actor.id, instance, version)
        if epoch is None:
            raise NotFound(f"cluster {actor.name} is gone")
        await fences.promise(tx, actor.id, stops_within_s)
        await clusters.seen(tx, {actor.id: 0.0})
        detail = {"epoch": epoch, "instance": instance[:64], "version": version[:64]}
        entry = audit.Entry(
            action="cluster.session_opened", object=f"cluster:{actor.name}", detail=detail
        )
        await audit.add(tx, actor, [entry])
    ctx.wakeups.wake({"clusters", "queue", f"cluster:{actor.id}"})
    return epoch


async def heard(ctx: Context, ago_s: Mapping[int, float]) -> None:
    """Note, for many clusters at once, how many seconds ago their agents were heard."""
    async with ctx.db.transaction() as tx:
        await clusters.seen(tx, ago_s)


async def receive_nodes(
    ctx: Context, actor: Actor, *, epoch: int, nodes: Sequence[NodeReport]
) -> None:
    """Replace what is known about the cluster's nodes.

    Raises:
        Conflict: `stale_epoch`.
    """
    async with ctx.db.transaction() as tx:
        if not await clusters.holds_epoch(tx, actor.id, epoch):
            raise Conflict("another agent speaks for this cluster now", code="stale_epoch")
        changed = await clusters.put_nodes(tx, actor.id, nodes)
        if changed:
            detail = {"nodes": len(nodes), "ready": sum(n.ready for n in nodes)}
            entry = audit.Entry(
                action="cluster.capacity_changed", object=f"cluster:{actor.name}", detail=detail
            )
            await audit.add(tx, actor, [entry])
    ctx.wakeups.wake({"clusters", "queue"} if changed else {"clusters"})


async def receive_checks(
    ctx: Context, actor: Actor, *, epoch: int, found: Sequence[CheckReport]
) -> None:
    """Replace what is known of the cluster's surroundings; a required check keeps work away.

    Raises:
        Conflict: `stale_epoch`.
    """
    found = list({one.name: one for one in found}.values())
    unfit = unfit_by(found)
    async with ctx.db.transaction() as tx:
        if not await clusters.holds_epoch(tx, actor.id, epoch):
            raise Conflict("another agent speaks for this cluster now", code="stale_epoch")
        await checks.put_checks(tx, actor.id, found)
        changed = await checks.set_unfit(tx, actor.id, unfit)
        if changed:
            action = "cluster.unfit" if unfit else "cluster.fit"
            detail = {"check": unfit} if unfit else None
            entry = audit.Entry(action=action, object=f"cluster:{actor.name}", detail=detail)
            await audit.add(tx, actor, [entry])
    news = {"clusters", f"cluster:{actor.id}"}
    ctx.wakeups.wake(news | {"queue"} if changed else news)
