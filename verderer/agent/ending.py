"""What stands between a program's success and the report of it: its outputs must be stored."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Protocol

import structlog

from verderer.agent.backoff import Backoff
from verderer.agent.chores import Chores
from verderer.agent.files.outputs import OutputUnavailable, store_outputs
from verderer.agent.files.transfers import Transfers
from verderer.agent.session import Superseded
from verderer.core.model.attempt import AttemptKey, End, EndCause
from verderer.drivers.contract import Driver, HasWorkspace
from verderer.wire.agent import OutputFile, StoredOutput

log = structlog.get_logger("verderer.agent")


class DecideEnd(Protocol):
    """`Reconciler.decide_end`."""

    def __call__(
        self,
        key: AttemptKey,
        end: End,
        *,
        at_ms: int | None = None,
        outputs: Sequence[StoredOutput] = (),
        by_driver: bool = False,
    ) -> None: ...


class Ender:
    """Stores outputs in the background; an outage of the store delays an end, and loses none."""

    def __init__(self, driver: Driver, transfers: Transfers, chores: Chores) -> None:
        self._spaces = driver if isinstance(driver, HasWorkspace) else None
        self._transfers = transfers
        self._chores = chores
        self._storing: dict[AttemptKey, asyncio.Task[None]] = {}
        self._decide_end: DecideEnd | None = None

    def begin(self, decide_end: DecideEnd) -> None:
        """Name whoever takes the ends."""
        self._decide_end = decide_end

    def carries(self, outputs: Sequence[OutputFile]) -> bool:
        """Whether the agent itself has something to store."""
        return self._spaces is not None and bool(outputs)

    def store(
        self, key: AttemptKey, outputs: Sequence[OutputFile], end: End, *, at_ms: int | None
    ) -> None:
        """Store the outputs of a program that ended with `end`, then decide its end."""
        task = self._chores.spawn(self._store(key, outputs, end, at_ms), f"outputs {key}")
        self._storing[key] = task
        task.add_done_callback(lambda _: self._storing.pop(key, None))

    def abort(self, key: AttemptKey) -> None:
        """Do not wait for the outputs any longer."""
        task = self._storing.pop(key, None)
        if task is not None:
            task.cancel()

    async def _store(
        self, key: AttemptKey, outputs: Sequence[OutputFile], end: End, at_ms: int | None
    ) -> None:
        stored: list[StoredOutput] = []

        async def once() -> None:
            space = self._spaces.workspace(key) if self._spaces is not None else None
            if space is None:
                raise OutputUnavailable("its working directory is gone, and the outputs with it")
            stored[:] = await store_outputs(self._transfers, space, outputs)

        try:
            await _stubbornly(once, key)
        except OutputUnavailable as error:
            end = End(cause=EndCause.OUTPUT, exit_code=end.exit_code, message=str(error))
        if self._decide_end is not None:
            self._decide_end(key, end, at_ms=at_ms, outputs=stored)


async def _stubbornly(once: Callable[[], Awaitable[None]], key: AttemptKey) -> None:
    backoff = Backoff()
    while True:
        try:
            await once()
        except (OutputUnavailable, Superseded):
            raise
        except Exception:
            log.exception("storing outputs failed", attempt=str(key))
            await backoff.wait()
        else:
            return
