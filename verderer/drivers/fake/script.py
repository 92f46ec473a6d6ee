"""What a fake cluster does with an order, and when time passes there."""

from __future__ import annotations

import asyncio
import heapq
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Protocol

from verderer.core.model.attempt import End, EndCause
from verderer.core.model.waiting import Waiting
from verderer.drivers.contract import Order

SUCCESS = End(cause=EndCause.EXIT, exit_code=0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Behaviour:
    """The life of one attempt. Times are seconds."""

    start_s: float = 0.0
    """From acceptance to running."""
    pending: Waiting | None = None
    """Why it waits until then."""
    run_s: float | None = 0.0
    """From running to its end; None hangs until it is stopped or its timeout passes."""
    end: End = SUCCESS
    output: bytes = b""
    """What replica 0 writes, all of it when it ends."""
    heeds_stop: bool = True
    """Ends at a polite signal; otherwise only at the end of the grace."""
    refuse: str = ""
    """When set, `start` raises a `Refusal` with this message and nothing exists."""
    lose_order: bool = False
    """The first `start` raises a `Fault`, and nothing exists."""
    crash_after_accept: bool = False
    """The first `start` raises a `Fault`, and the attempt exists all the same."""
    node: str = ""
    """Where it runs; empty takes the nodes in turn."""


Behave = Callable[[Order], Behaviour]


def succeed_at_once(_order: Order) -> Behaviour:
    """Every attempt succeeds as soon as it is looked at."""
    return Behaviour()


class Clock(Protocol):
    """Seconds that only go forward, and a way to wait in them."""

    def now(self) -> float:
        """Seconds since some fixed instant."""
        ...

    async def wait(self, event: asyncio.Event, *, until: float) -> None:
        """Return when the event is set or at `until`, whichever is first."""
        ...


class RealClock:
    """The machine's own."""

    def now(self) -> float:
        return time.monotonic()

    async def wait(self, event: asyncio.Event, *, until: float) -> None:
        try:
            async with asyncio.timeout(max(0.0, until - self.now())):
                await event.wait()
        except TimeoutError:
            return


@dataclass(slots=True)
class VirtualClock:
    """Waiting takes no time: as soon as everybody waits, time jumps to the nearest wake-up.

    Everything that waits by it must run in one event loop. What waits by other means (sockets,
    real sleeps) is not seen, so that time may pass while it still works.
    """

    seconds: float = 0.0
    _wakes: list[tuple[float, int]] = field(default_factory=list)
    _tickets: int = 0

    def now(self) -> float:
        return self.seconds

    def advance(self, seconds: float) -> None:
        """Let time pass by hand."""
        self.seconds += seconds

    async def wait(self, event: asyncio.Event, *, until: float) -> None:
        self._tickets += 1
        mine = (until, self._tickets)
        heapq.heappush(self._wakes, mine)
        try:
            while not event.is_set() and self.seconds < until:
                await asyncio.sleep(0)  # everybody who is ready goes first
                if not event.is_set() and self._wakes[0] == mine:
                    self.seconds = max(self.seconds, until)
        finally:
            self._wakes.remove(mine)
            heapq.heapify(self._wakes)
