"""Group commit for requests: what arrives while a transaction runs shares the next one."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Generic, TypeVar

T = TypeVar("T")
R = TypeVar("R")


class Batcher(Generic[T, R]):
    """Runs `work` over whatever has gathered, a few batches at a time.

    An item that comes when nothing runs is worked on at once, so an idle system adds no wait.
    `work` returns one result or exception for each item, in order.
    """

    def __init__(
        self,
        work: Callable[[Sequence[T]], Awaitable[Sequence[R | Exception]]],
        *,
        most: int = 500,
        lanes: int = 2,
    ) -> None:
        self._work = work
        self._most = most
        self._free = lanes
        self._items: list[tuple[T, asyncio.Future[R]]] = []
        self._tasks: set[asyncio.Task[None]] = set()

    async def add(self, item: T) -> R:
        """Return the result for `item`, or raise its exception."""
        future: asyncio.Future[R] = asyncio.get_running_loop().create_future()
        self._items.append((item, future))
        if self._free:
            self._free -= 1
            task = asyncio.create_task(self._drain())
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)
        return await future

    async def _drain(self) -> None:
        try:
            await asyncio.sleep(0)  # let requests that arrived in the same turn join
            while self._items:
                batch, self._items = self._items[: self._most], self._items[self._most :]
                await self._run(batch)
        finally:
            self._free += 1

    async def _run(self, batch: Sequence[tuple[T, asyncio.Future[R]]]) -> None:
        try:
            results = await self._work([item for item, _ in batch])
        except Exception as e:  # noqa: BLE001 - whoever waits for an item must be told
            results = [e] * len(batch)
        for (_, future), result in zip(batch, results, strict=True):
            if future.done():  # its request was given up
                continue
            if isinstance(result, Exception):
                future.set_exception(result)
            else:
                future.set_result(result)
