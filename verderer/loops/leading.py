"""Leading: a term begins when the lease is taken and ends when it cannot be renewed."""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Awaitable, Callable

import structlog

from verderer.core.errors import Fault
from verderer.usecases.context import Context
from verderer.usecases.lead import give_up_lease, take_lease

log = structlog.get_logger(__name__)


async def lead(
    ctx: Context,
    name: str,
    term: Callable[[int], Awaitable[None]],
    *,
    holder: str,
    lease_s: float,
) -> None:
    """Compete for the lease for ever; run `term(epoch)` while it is held, and cancel it after.

    A term that returns or raises gives the lease up. A standby takes over within `lease_s` plus a
    third of it after the leader's death, at once when the leader leaves in order.
    """
    while True:
        with ctx.wakeups.listening(f"lease:{name}") as news:
            epoch = await _try(ctx, name, holder, lease_s, None)
            if epoch is None:
                await _wait(news, lease_s / 3 * random.uniform(0.8, 1.2))
                continue
        log.info("leading", lease=name, epoch=epoch)
        try:
            await _serve(ctx, name, term, holder=holder, lease_s=lease_s, epoch=epoch)
        finally:
            await _leave(ctx, name, holder)


async def _serve(
    ctx: Context,
    name: str,
    term: Callable[[int], Awaitable[None]],
    *,
    holder: str,
    lease_s: float,
    epoch: int,
) -> None:
    work = asyncio.ensure_future(term(epoch))
    renewed = time.monotonic()
    try:
        while not work.done():
            await asyncio.wait([work], timeout=lease_s / 3)
            if work.done():
                break
            began = time.monotonic()
            again = await _try(ctx, name, holder, lease_s, epoch)
            if again == epoch:
                renewed = began
            elif again is not None or began - renewed > lease_s:
                log.warning("the lease is lost", lease=name, epoch=epoch)
                return
        await work  # raise what ended it
    finally:
        work.cancel()
        # What hangs on a broken connection must not keep us from leading again: whatever it still
        # writes carries an epoch that is over, and is refused.
        done, hanging = await asyncio.wait([work], timeout=lease_s)
        if hanging:
            log.error("a term does not end", lease=name, epoch=epoch)
        await asyncio.gather(*done, return_exceptions=True)


async def _try(
    ctx: Context, name: str, holder: str, lease_s: float, held: int | None
) -> int | None:
    try:
        async with asyncio.timeout(lease_s):
            return await take_lease(ctx, name, holder=holder, ttl_s=lease_s, held=held)
    except (Fault, TimeoutError) as e:
        log.warning("the lease cannot be written", lease=name, error=str(e))
        return None


async def _leave(ctx: Context, name: str, holder: str) -> None:
    try:
        async with asyncio.timeout(1.0):
            await give_up_lease(ctx, name, holder=holder)
    except (Fault, TimeoutError):
        log.warning("the lease could not be given up; it will run out", lease=name)


async def _wait(news: asyncio.Event, seconds: float) -> None:
    try:
        async with asyncio.timeout(seconds):
            await news.wait()
    except TimeoutError:
        pass
