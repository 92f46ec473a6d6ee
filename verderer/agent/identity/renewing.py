"""Fetches credentials for as long as the agent lives."""

from __future__ import annotations

import asyncio
import random
from typing import Final, Protocol

import structlog

from verderer.agent.backoff import Backoff
from verderer.agent.identity.enrol import Door, renew
from verderer.agent.identity.keeping import Identity, Keeper
from verderer.agent.session import Complaints
from verderer.core.errors import VerdererError

log = structlog.get_logger("verderer.agent")

_LOOK_EVERY_S: Final = 600.0
"""A clock that was set, or a machine that slept, is noticed within this time."""
_FIRST_PAUSE_S: Final = 5.0


class Shows(Protocol):
    """Whoever sends the credential; `wire.client.AgentClient` does."""

    def present(self, credential: str) -> None:
        """Show this one from the next request on."""
        ...


class Renewing:
    """Keeps one identity's credential fresh."""

    def __init__(self, door: Door, keeper: Keeper, identity: Identity) -> None:
        self._door = door
        self._keeper = keeper
        self._identity = identity

    @property
    def credential(self) -> str:
        return self._identity.credential

    @property
    def due(self) -> bool:
        """Whether the next credential should be fetched now."""
        return self._door.clock() >= self._identity.renew_unix_s

    async def once(self, shows: Shows) -> None:
        """Fetch the next credential and show it. Raises as `enrol.renew`."""
        self._identity = await renew(self._door, self._keeper, self._identity)
        shows.present(self._identity.credential)
        log.info("a new credential", cluster=self._identity.cluster)

    async def run(self, shows: Shows) -> None:
        """Until cancelled."""
        backoff, complaints = Backoff(first_s=_FIRST_PAUSE_S), Complaints("renewing the credential")
        while True:
            if not self.due:
                left = self._identity.renew_unix_s - self._door.clock()
                await asyncio.sleep(min(_LOOK_EVERY_S, left * random.uniform(1.0, 1.1)))
                continue
            try:
                await self.once(shows)
            except VerdererError as error:
                wait = backoff.next_s()
                complaints.trouble(error, retry_s=wait)
                await asyncio.sleep(wait)
            else:
                backoff.reset()
                complaints.over()
