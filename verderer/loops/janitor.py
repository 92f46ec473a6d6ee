"""The janitor: removes what has expired, a bounded piece at a time."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import structlog

from verderer.core.errors import Fault
from verderer.loops.leading import lead
from verderer.objects.collector import Collected, collect_interrupted, collect_tmp
from verderer.objects.store import ObjectStore
from verderer.usecases.context import Context
from verderer.usecases.governance import approvals

_EVERY_S = 600.0
_LEASE_S = 30.0
_PAUSE_S = 0.2

log = structlog.get_logger(__name__)


async def run_janitor(ctx: Context, store: ObjectStore, *, holder: str) -> None:
    """Compete for the janitor's lease and clean while holding it, until cancelled."""

    async def term(_epoch: int) -> None:
        while True:
            await _clean(ctx, store)
            await _expire(ctx)
            await asyncio.sleep(_EVERY_S)

    await lead(ctx, "janitor", term, holder=holder, lease_s=_LEASE_S)


async def _clean(ctx: Context, store: ObjectStore) -> None:
    for collect in (collect_tmp, collect_interrupted):
        try:
            await _to_the_end(ctx, store, collect)
        except Fault as e:
            log.warning("cleaning failed; the next round tries again", error=e.message)


async def _expire(ctx: Context) -> None:
    try:
        done = await approvals.expire(ctx)
    except Fault as e:
        log.warning("requests were not expired; the next round tries again", error=e.message)
        return
    if done:
        log.info("expired requests and grants", count=done)


async def _to_the_end(
    ctx: Context, store: ObjectStore, collect: Callable[..., Awaitable[Collected]]
) -> None:
    after: str | None = None
    while True:
        done = await collect(store, now=ctx.clock(), after=after)
        if done.deleted or done.failed:
            log.info("cleaned objects", deleted=done.deleted, failed=done.failed)
        after = done.next_after
        if after is None:
            return
        await asyncio.sleep(_PAUSE_S)
