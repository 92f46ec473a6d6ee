"""Tasks that belong to the agent rather than to whoever started them."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine

import structlog

from verderer.agent.session import Superseded

log = structlog.get_logger("verderer.agent")


class Chores:
    """Keeps tasks alive, says which failed, and ends them all together."""

    def __init__(self) -> None:
        self._tasks: set[asyncio.Task[None]] = set()

    def spawn(self, work: Coroutine[object, object, None], name: str) -> asyncio.Task[None]:
        """Run `work` until it ends or everything does."""
        task = asyncio.create_task(work, name=name)
        self._tasks.add(task)
        task.add_done_callback(self._ended)
        return task

    async def end(self) -> None:
        """Cancel what still runs and wait for it."""
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def _ended(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if task.cancelled():
            return
        error = task.exception()
        # Superseded ends the session, which whoever holds it is told by the session itself.
        if error is not None and not isinstance(error, Superseded):
            log.error("a task of the agent failed", task=task.get_name(), exc_info=error)
