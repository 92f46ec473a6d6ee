"""Tells the driver to stop attempts and to forget those that are safe elsewhere."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Final, Protocol

import structlog

from verderer.agent.backoff import Backoff
from verderer.agent.chores import Chores
from verderer.core.errors import Fault
from verderer.core.model.attempt import AttemptKey
from verderer.drivers.contract import Driver

log = structlog.get_logger("verderer.agent")

WORKERS: Final = 8


class Releases(Protocol):
    """Whoever keeps the books; told as things happen."""

    def stop_failed(self, key: AttemptKey) -> None: ...
    def forgotten(self, key: AttemptKey) -> None: ...


class Releaser:
    """Both deeds may be repeated, and are until the driver has done them."""

    def __init__(self, driver: Driver, chores: Chores) -> None:
        self._driver = driver
        self._chores = chores
        self._queue: asyncio.Queue[tuple[AttemptKey, Backoff]] = asyncio.Queue()

    def begin(self, books: Releases) -> None:
        """Start the workers."""
        self._books = books
        for number in range(WORKERS):
            self._chores.spawn(self._work(), f"releaser {number}")

    def stop(self, key: AttemptKey, grace_s: float) -> None:
        """Make `key` end; its end is seen by observation."""
        # A task each: a driver may take as long over it as the grace lasts.
        self._chores.spawn(self._stop(key, grace_s), f"stop {key}")

    def forget(self, key: AttemptKey) -> None:
        """Remove what is left of `key`."""
        self._queue.put_nowait((key, Backoff()))

    async def _stop(self, key: AttemptKey, grace_s: float) -> None:
        backoff = Backoff()
        for _ in range(5):
            try:
                await self._driver.stop(key, grace_s=grace_s)
            except Exception as error:  # noqa: BLE001 - a driver's mistake must not end the agent
                _complain("stopping", key, error)
                await backoff.wait()
            else:
                return
        self._books.stop_failed(key)

    async def _work(self) -> None:
        while True:
            key, backoff = await self._queue.get()
            try:
                await self._driver.forget(key)
            except Exception as error:  # noqa: BLE001 - a driver's mistake must not end the agent
                _complain("forgetting", key, error)
                again: Callable[[tuple[AttemptKey, Backoff]], None] = self._queue.put_nowait
                loop = asyncio.get_running_loop()
                loop.call_later(backoff.next_s(), again, (key, backoff))
            else:
                self._books.forgotten(key)


def _complain(what: str, key: AttemptKey, error: Exception) -> None:
    if isinstance(error, Fault):
        log.warning(f"{what} failed", attempt=str(key), reason=error.message)
    else:
        log.error(f"{what} failed", attempt=str(key), exc_info=error)
