"""Lead: at most one process at a time does what must not be done twice."""

from __future__ import annotations

from datetime import timedelta

from verderer.core.model.actor import Actor, ActorKind
from verderer.store.tables import audit, leases
from verderer.usecases.context import Context


async def take_lease(
    ctx: Context, name: str, *, holder: str, ttl_s: float, held: int | None
) -> int | None:
    """Take or renew a lease; its epoch, or None while somebody else holds it.

    `held` is the epoch of the caller's own term, if it believes to lead.
    """
    async with ctx.db.transaction() as tx:
        epoch = await leases.take(tx, name, holder, timedelta(seconds=ttl_s))
        if epoch is not None and epoch != held:
            actor = Actor(kind=ActorKind.SYSTEM, name=name)
            detail = {"holder": holder, "epoch": epoch}
            entry = audit.Entry(action="lease.taken", object=f"lease:{name}", detail=detail)
            await audit.add(tx, actor, [entry])
    return epoch


async def give_up_lease(ctx: Context, name: str, *, holder: str) -> None:
    """Let the next one in at once; nothing happens when the lease is not ours."""
    async with ctx.db.transaction() as tx:
        await leases.give_up(tx, name, holder)
    ctx.wakeups.wake([f"lease:{name}"])
