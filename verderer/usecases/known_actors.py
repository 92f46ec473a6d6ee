"""Remembers for half a second who a credential belongs to, so that hot routes do not ask again.

Whoever changes people wakes the topic `auth`, which empties the memory of every process at once;
half a second is the bound when such a wakeup is lost.
"""

from __future__ import annotations

import time
from collections.abc import Callable

from verderer.core.model.actor import Actor

TOPIC = "auth"
_KEEP_S = 0.5
_MOST = 10_000


class KnownActors:
    """One in each process."""

    def __init__(self, now: Callable[[], float] = time.monotonic) -> None:
        self._now = now
        self._known: dict[tuple[bytes, str], tuple[Actor, float]] = {}
        self._generation = 0

    def heard(self, topic: str) -> None:
        """Forget everybody when `topic` says that people changed."""
        if topic == TOPIC:
            self._known.clear()
            self._generation += 1

    def get(self, key: bytes, origin: str) -> Actor | None:
        """The actor at `origin`, if it was looked up within the last half second."""
        found = self._known.get((key, origin))
        return found[0] if found is not None and self._now() < found[1] else None

    @property
    def generation(self) -> int:
        """Read it before looking an actor up, and give it to `put`."""
        return self._generation

    def put(self, key: bytes, actor: Actor, *, generation: int) -> None:
        """Remember, unless people changed since `generation` was read."""
        if generation != self._generation:
            return
        if len(self._known) >= _MOST:
            self._known.clear()
        self._known[key, actor.origin] = (actor, self._now() + _KEEP_S)
