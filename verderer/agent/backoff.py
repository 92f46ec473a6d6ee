"""Waiting longer after each failure, never in step with anybody else."""

from __future__ import annotations

import asyncio
import random


class Backoff:
    """0.1 s, doubling to 15 s, each shortened by chance to between half and the whole.

    The chance keeps ten thousand agents that lost the same server from coming back as one.
    """

    def __init__(self, *, first_s: float = 0.1, longest_s: float = 15.0) -> None:
        self.failures = 0
        self._first_s = first_s
        self._longest_s = longest_s

    def next_s(self, asked_s: float = 0.0) -> float:
        """How long to wait after one more failure; not less than `asked_s`, up to the longest."""
        doubled = self._first_s * 2.0 ** min(self.failures, 30)
        self.failures += 1
        wait = min(self._longest_s, doubled) * (0.5 + random.random() / 2)
        return max(wait, min(asked_s, self._longest_s))

    async def wait(self, asked_s: float = 0.0) -> None:
        """Sleep for `next_s`."""
        await asyncio.sleep(self.next_s(asked_s))

    def reset(self) -> None:
        """Things work again."""
        self.failures = 0
