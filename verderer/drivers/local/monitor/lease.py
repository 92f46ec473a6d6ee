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
    """Read from the root only when what was read last is over."""

    def __init__(self, root: str, boot: str, *, leased: bool) -> None:
        self._root = root
        self._boot = boot
        self._until = float("-inf") if leased else float("inf")
        self.ended = False

    def left_s(self) -> float | None:
        """Until when the monitor may sleep; None: for ever."""
        if self.ended or self._until == float("inf"):
            return None
        return min(LOOK_S, max(0.0, self._until - now()))

    def over(self) -> bool:
        """Whether the attempt has to end now; says so once."""
        if self.ended or now() < self._until:
            return False
        found = records.read(self._root, records.LEASE)
        if found is not None and found.get("boot") == self._boot:
            until = found.get("until")
            self._until = float(until) if isinstance(until, int | float) else self._until
        self.ended = now() >= self._until
        return self.ended
