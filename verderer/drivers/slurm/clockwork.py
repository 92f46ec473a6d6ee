"""When to ask Slurm: often while something happens, seldom otherwise, ever less when it is slow."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable
from typing import Final

from verderer.core.errors import Fault

_SHARE: Final = 10.0
"""After a look that took t comes a pause of at least 10 t."""
_CALM: Final = 0.02
"""After s seconds without news a look every 0.02 s will do."""
_LONGEST_RETRY_S: Final = 30.0


class Clockwork:
    """Calls `look` when it is due and for as many callers as there are, one at a time."""

    def __init__(
        self,
        look: Callable[[], Awaitable[None]],
        *,
        shortest_s: float,
        longest_s: float,
        clock: Callable[[], float],
    ) -> None:
        self._look = look
        self._shortest_s = shortest_s
        self._longest_s = longest_s
        self._clock = clock
        self._lock = asyncio.Lock()
        self._looked_at = float("-inf")
        self._took_s = 0.0
        self._news_at = clock()
        self._faults = 0
        self._fault: Fault | None = None

    def stir(self) -> None:
        """Something happens: look often for a while."""
        self._news_at = self._clock()

    def interval_s(self, *, busy: bool) -> float:
        """Seconds between two looks at present."""
        if self._fault is not None:
            base = max(self._shortest_s, self._fault.retry_after_s)
            return min(_LONGEST_RETRY_S, base * 2.0 ** min(self._faults - 1, 10))
        if not busy:
            return max(self._longest_s, _SHARE * self._took_s)
        calm = _CALM * (self._clock() - self._news_at)
        usual = min(self._longest_s, max(self._shortest_s, calm))
        return max(usual, _SHARE * self._took_s)

    def due_in_s(self, *, busy: bool) -> float:
        """Seconds until the next look is due; 0 when it is."""
        passed = self._clock() - self._looked_at
        return max(0.0, self.interval_s(busy=busy) - passed)

    async def refresh(self, *, busy: bool) -> None:
        """Look, unless it is not due.

        Raises:
            Fault: the last look failed. It is told again, without asking Slurm, until the next
                is due.
        """
        async with self._lock:
            if self.due_in_s(busy=busy) <= 0:
                await self._try()
            if self._fault is not None:
                raise self._fault

    async def _try(self) -> None:
        began = self._clock()
        try:
            await self._look()
        except Fault as problem:
            self._faults += 1
            self._fault = problem
        else:
            self._faults, self._fault = 0, None
        finally:
            self._looked_at = self._clock()
            self._took_s = self._looked_at - began


async def wait_for(event: asyncio.Event, timeout_s: float) -> None:
    """Return when the event is set, or on time-out."""
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(timeout_s):
            await event.wait()
