"""Heartbeats: any request of an agent is one; they are written together, once a second."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable

import structlog

from verderer.core.errors import Fault
from verderer.usecases.agents.agent_session import heard
from verderer.usecases.context import Context

_EVERY_S = 1.0

log = structlog.get_logger(__name__)


class Heartbeats:
    """One for each server process."""

    def __init__(self, ctx: Context, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._ctx = ctx
        self._clock = clock
        self._heard: dict[int, float] = {}

    def note(self, cluster: int) -> None:
        """The agent of `cluster` was heard now."""
        self._heard[cluster] = self._clock()

    async def run(self) -> None:
        """Write what was noted until cancelled; what cannot be written is written later."""
        while True:
            await asyncio.sleep(_EVERY_S)
            await self.write()

    async def write(self) -> None:
        """Write what was noted, each as old as it is by now: a fault must not make it younger."""
        if not self._heard:
            return
        noted, self._heard = self._heard, {}
        try:
            await heard(self._ctx, {c: self._clock() - at for c, at in noted.items()})
        except Fault as e:
            self._heard = noted | self._heard  # what came meanwhile is newer
            log.warning("heartbeats could not be written", error=e.message)
