"""The placement loop: woken by what was queued and by what came free."""

from __future__ import annotations

import asyncio

import structlog

from verderer.core.errors import Conflict, Fault
from verderer.loops.leading import lead
from verderer.usecases.context import Context
from verderer.usecases.place_runs import LEASE, Placer

log = structlog.get_logger(__name__)


async def run_placement(ctx: Context, *, holder: str, lease_s: float, tick_s: float) -> None:
    """Compete to lead and place while leading, until cancelled.

    `tick_s` is how long news may be missed before the loop looks by itself.
    """

    async def term(epoch: int) -> None:
        await _place(ctx, epoch, tick_s)

    await lead(ctx, LEASE, term, holder=holder, lease_s=lease_s)


async def _place(ctx: Context, epoch: int, tick_s: float) -> None:
    placer = Placer(ctx, epoch=epoch)
    with ctx.wakeups.listening("queue", "clusters") as news:
        while True:
            news.clear()
            wait_s = tick_s
            try:
                done = await placer.round()
            except Conflict as e:
                log.warning("the term is over", reason=e.message)
                return
            except Fault as e:
                log.warning("a round failed", error=e.message)
                await asyncio.sleep(e.retry_after_s)
                continue
            if done.more:
                continue
            if done.wake_in_s is not None:
                wait_s = min(wait_s, done.wake_in_s)
            try:
                async with asyncio.timeout(wait_s):
                    await news.wait()
            except TimeoutError:
                pass
