"""How long to wait before a process that ended is started again."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(slots=True)
class Backoff:
    """Doubles from `first_s` to `most_s`, and starts over after a life of `good_s`."""

    first_s: float = 0.2
    most_s: float = 10.0
    good_s: float = 30.0
    failures: int = 0
    """Short lives in a row."""

    def after(self, life_s: float) -> float:
        """Seconds to wait after a life of `life_s` seconds."""
        if life_s >= self.good_s:
            self.failures = 0
        self.failures += 1
        # The exponent is bounded: 2.0 ** 1100 overflows, and a broken role may fail for weeks.
        return min(self.most_s, self.first_s * 2.0 ** min(self.failures - 1, 32))
