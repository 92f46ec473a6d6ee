"""Until when a leased attempt may go on, as its monitor sees it: with or without an agent."""

from __future__ import annotations

import time

from verderer.drivers.local.monitor import records

GRACE_S = 30.0
"""Most that a program has, once its lease is over, between the signal and the kill."""
LOOK_S = 5.0
"""A machine that slept wakes a monitor as much later as it slept: so it looks now and then."""
OVER = "the control plane was not heard for too long; it may be started again elsewhere"


def now() -> float:
    """Seconds since boot, those that the machine slept included."""
    return time.clock_gettime(time.CLOCK_BOOTTIME)


class Lease:
    """Read from the root only when what was read last is over.

    `term` is the unbroken row of leases that the attempt was ordered under; None: it needs none.
    One that begins after a break is for what is ordered from then on: what was ordered before may
    run elsewhere by now.
    """

    def __init__(self, root: str, boot: str, *, term: int | None) -> None:
        self._root = root
        self._boot = boot
        self._term = term
        self._until = now()
        self.ended = False

    def left_s(self) -> float | None:
        """For how long the monitor may sleep; None: for ever."""
        if self.ended or self._term is None:
            return None
        return min(LOOK_S, max(0.0, self._until - now()))

    def over(self) -> bool:
        """Whether the attempt has to end now; says so once."""
        if self.ended or self._term is None or now() < self._until:
            return False
        found = records.read(self._root, records.LEASE) or {}
        until = found.get("until")
        same = found.get("boot") == self._boot and found.get("term") == self._term
        if same and isinstance(until, int | float):
            self._until = float(until)
        self.ended = not same or now() >= self._until
        return self.ended

    def grace_s(self, own_s: float) -> float:
        """What is left of a program's own grace: none when all this is noticed late."""
        return max(0.0, min(GRACE_S, own_s) - (now() - self._until))
