"""Remembers for a second which resource groups each project may use, so that submits need not ask.

A submission that the remembered rules refuse is looked at again under those of now. One that they
let in wrongly waits, since placement asks the rules of its own moment.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping

from verderer.core.errors import NotAllowed
from verderer.core.governance.routing import Grant, route
from verderer.store.bounds import ResidentBounds
from verderer.store.database import Database

TOPIC = "governance"
_KEEP_S = 1.0


class KnownRules:
    """One in each process."""

    def __init__(self, now: Callable[[], float] = time.monotonic) -> None:
        self._now = now
        self._resident = ResidentBounds()
        self._until = -1.0

    def heard(self, topic: str) -> None:
        """Ask again when `topic` says that rules changed."""
        if topic == TOPIC:
            self._until = -1.0

    async def route(
        self, db: Database, project: int, *, labels: Mapping[str, str], asked: str, at: float
    ) -> Grant:
        """The grant that a run of the project goes under, see `core.governance.routing.route`.

        `at` is Unix time.

        Raises:
            NotAllowed: the rules have no place for it.
        """
        if self._now() < self._until and (known := self._resident.grants_of(project)):
            try:
                return route(known, labels=labels, asked=asked, now=at)
            except NotAllowed:
                pass
        async with db.reading() as tx:
            await self._resident.learn(tx, {project})
        self._until = self._now() + _KEEP_S
        return route(self._resident.grants_of(project), labels=labels, asked=asked, now=at)
