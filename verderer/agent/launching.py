"""Brings attempts to the driver: working directory, inputs, a durable record, then the start.

A fixed number of workers serve all attempts; only one whose inputs have to be fetched gets a task
of its own, so that large files never keep others waiting.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from typing import Final, Protocol

import structlog

from verderer.agent.backoff import Backoff
from verderer.agent.chores import Chores
from verderer.agent.files.inputs import InputUnavailable, fetch_inputs
from verderer.agent.files.transfers import Transfers
from verderer.agent.journal import Journal
from verderer.agent.orders import Held, Phase
from verderer.agent.session import Superseded
from verderer.agent.translate import driver_order, terms_of
from verderer.core.errors import Fault, Refusal
from verderer.core.model.attempt import AttemptKey, End, EndCause
from verderer.drivers.contract import Driver, HasWorkspace
from verderer.wire.agent import Launch, Order

log = structlog.get_logger("verderer.agent")

WORKERS: Final = 32


class Launches(Protocol):
    """Whoever keeps the books; told as things happen."""

    def next_proof(self) -> int:
        """Number of the next observation to begin."""
        ...

    def unwanted(self, key: AttemptKey) -> bool:
        """Whether the attempt must end."""
        ...

    def launched(self, key: AttemptKey) -> None:
        """The driver has it."""
        ...

    def not_started(self, key: AttemptKey, end: End) -> None:
        """It will never run."""
        ...

    def changed(self, key: AttemptKey) -> None:
        """Something about it is worth deciding again."""
        ...


@dataclass(slots=True)
class _Item:
    key: AttemptKey
    order: Order
    launch: Launch
    held: Held
    workspace: str = ""
    ready: bool = False
    recorded: bool = False
    asked: bool = False
    backoff: Backoff = field(default_factory=Backoff)


class Launcher:
    """Starts what is submitted, at most once each, and tries again while the cluster is away."""

    def __init__(
        self, driver: Driver, journal: Journal, transfers: Transfers, chores: Chores
    ) -> None:
        self._driver = driver
        self._spaces = driver if isinstance(driver, HasWorkspace) else None
        self._journal = journal
        self._transfers = transfers
        self._chores = chores
        self._queue: asyncio.Queue[_Item] = asyncio.Queue()
        self._fetching: dict[AttemptKey, asyncio.Task[None]] = {}

    def begin(self, books: Launches) -> None:
        """Start the workers."""
        self._books = books
        for number in range(WORKERS):
            self._chores.spawn(self._work(), f"launcher {number}")

    def submit(self, key: AttemptKey, order: Order, launch: Launch, held: Held) -> None:
        """Start an attempt that was never started anywhere."""
        self._enqueue(_Item(key, order, launch, held))

    def abort(self, key: AttemptKey) -> None:
        """Stop preparing an attempt that is not wanted any more."""
        task = self._fetching.get(key)
        if task is not None:
            task.cancel()

    async def _work(self) -> None:
        while True:
            await self._attempt(await self._queue.get())

    async def _fetch(self, item: _Item) -> None:
        try:
            await self._attempt(item)
        finally:
            self._fetching.pop(item.key, None)

    async def _attempt(self, item: _Item) -> None:
        item.held.busy = True
        try:
            await self._launch(item)
        except InputUnavailable as error:
            self._refuse(item, str(error))
        except (Refusal, ValueError) as error:
            self._refuse(item, str(error))
        except (Fault, Superseded) as error:
            self._again(item, str(error))
        except Exception as error:
            log.exception("launching failed", attempt=str(item.key))
            self._again(item, str(error))
        finally:
            item.held.busy = False
            self._books.changed(item.key)

    async def _launch(self, item: _Item) -> None:
        held = item.held
        if held.phase is Phase.PREPARING:
            await self._prepare(item)
            if self._dropped(item):
                return
            held.phase = Phase.LAUNCHING
        if not item.recorded:
            await self._journal.write(terms_of(item.order))
            item.recorded = True
        if self._give_way(item):
            return
        item.asked = True
        await self._driver.start(driver_order(item.order, item.launch), workspace=item.workspace)
        held.proof = self._books.next_proof()
        held.confirmed = True
        if held.phase is Phase.LAUNCHING:
            held.phase = Phase.LAUNCHED
        self._books.launched(item.key)

    async def _prepare(self, item: _Item) -> None:
        if self._spaces is None or item.ready:
            return
        item.workspace = await self._spaces.prepare(driver_order(item.order, item.launch))
        if item.launch.inputs:
            await fetch_inputs(self._transfers, item.workspace, item.launch.inputs)
        item.ready = True

    def _dropped(self, item: _Item) -> bool:
        return item.held.phase is not Phase.PREPARING or self._books.unwanted(item.key)

    def _give_way(self, item: _Item) -> bool:
        """Whether a stop, or the end itself, came before the cluster could be reached."""
        if item.held.phase is not Phase.LAUNCHING:
            return True
        if not self._books.unwanted(item.key):
            return False
        if item.asked:
            # It may exist for all we know: from here on it is stopped like any other.
            item.held.proof = self._books.next_proof()
            item.held.phase = Phase.LAUNCHED
        else:
            item.held.phase = Phase.PREPARING
        return True

    def _refuse(self, item: _Item, message: str) -> None:
        if item.held.phase is not Phase.ENDED:
            self._books.not_started(item.key, End(cause=EndCause.START, message=message))

    def _again(self, item: _Item, message: str) -> None:
        if item.held.phase is Phase.ENDED:
            return
        wait = item.backoff.next_s()
        if item.backoff.failures in (1, 10, 100):
            log.warning("launching waits", attempt=str(item.key), reason=message, retry_s=wait)
        asyncio.get_running_loop().call_later(wait, self._enqueue, item)

    def _enqueue(self, item: _Item) -> None:
        if item.held.phase not in (Phase.PREPARING, Phase.LAUNCHING):
            return
        if self._spaces is not None and item.launch.inputs and not item.ready:
            self._fetching[item.key] = self._chores.spawn(self._fetch(item), f"inputs {item.key}")
        else:
            self._queue.put_nowait(item)
