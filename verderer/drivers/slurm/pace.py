"""Keeps submissions from coming faster than a controller likes."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable


class Pace:
    """A bucket of permits: a burst of one second's worth, then one after the other."""

    def __init__(self, per_s: float, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._per_s = per_s
        self._clock = clock
        self._next_at = clock()

    async def permit(self) -> None:
        """Return when the next may go; each call takes one permit."""
        wait = self.take()
        if wait > 0:
            await asyncio.sleep(wait)

    def take(self) -> float:
        """Take a permit; seconds to wait before it is good."""
        now = self._clock()
        # One second of rest is all that can be saved up.
        self._next_at = max(self._next_at, now - 1.0) + 1.0 / self._per_s
        return max(0.0, self._next_at - now)
