"""Heartbeats: any request of an agent is one; they are written together, once a second."""

from __future__ import annotations

import asyncio

import structlog

from verderer.core.errors import Fault
from verderer.usecases.agents.agent_session import heard
from verderer.usecases.context import Context

_EVERY_S = 1.0

log = structlog.get_logger(__name__)


class Heartbeats:
    """One for each server process."""

    def __init__(self, ctx: Context) -> None:
        self._ctx = ctx
        self._clusters: set[int] = set()

    def note(self, cluster: int) -> None:
        """The agent of `cluster` was heard now."""
        self._clusters.add(cluster)

    async def run(self) -> None:
        """Write what was noted until cancelled; what cannot be written is written later."""
        while True:
            await asyncio.sleep(_EVERY_S)
            if not self._clusters:
                continue
            clusters, self._clusters = self._clusters, set()
            try:
                await heard(self._ctx, sorted(clusters))
            except Fault as e:
                self._clusters |= clusters
                log.warning("heartbeats could not be written", error=e.message)
