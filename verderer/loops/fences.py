"""The fence loop: looks for clusters that have been silent for long enough."""

from __future__ import annotations

import asyncio

import structlog

from verderer.core.errors import Fault
from verderer.loops.leading import lead
from verderer.usecases.agents.fence import fence_silent
from verderer.usecases.context import Context

_EVERY_S = 5.0

log = structlog.get_logger(__name__)


async def run_fences(ctx: Context, *, holder: str, lease_s: float) -> None:
    """Compete for the fences' lease and look while holding it, until cancelled."""

    async def term(_epoch: int) -> None:
        while True:
            try:
                await fence_silent(ctx)
            except Fault as e:
                log.warning("looking for lost clusters failed", error=e.message)
            await asyncio.sleep(_EVERY_S)

    await lead(ctx, "fences", term, holder=holder, lease_s=lease_s)
