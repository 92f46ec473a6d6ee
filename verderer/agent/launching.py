"""Brings attempts to the driver: working directory, inputs, a durable record, then the start.

A fixed number of workers serve all attempts; only one whose inputs have to be fetched gets a task
of its own, so that large files never keep others waiting.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from dataclasses import dataclass, field, replace
from typing import Final, Protocol

import structlog

from verderer.agent.backoff import Backoff
from verderer.agent.chores import Chores
from verderer.agent.files.inputs import InputUnavailable, fetch_inputs
from verderer.agent.files.tickets import Tickets
from verderer.agent.files.transfers import Transfers
from verderer.agent.journal import Journal
from verderer.agent.orders import Held, Phase
from verderer.agent.session import Superseded
from verderer.agent.translate import driver_order, terms_of
from verderer.core.errors import Fault, Refusal
from verderer.core.model.attempt import AttemptKey, End, EndCause
from verderer.drivers.contract import CarriesApart, Driver, HasWorkspace
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
        self,
        driver: Driver,
        journal: Journal,
        transfers: Transfers,
        chores: Chores,
        tickets: Tickets | None = None,
    ) -> None:
        """`tickets` is for drivers whose steps have a carrier of their own."""
        self._driver = driver
        self._tickets = tickets if isinstance(driver, CarriesApart) else None
        self._spaces = driver if isinstance(driver, HasWorkspace) else None
        self._journal = journal
        self._transfers = transfers
        self._chores = chores
        self._to_prepare: asyncio.Queue[_Item] = asyncio.Queue()
        self._to_record: asyncio.Queue[_Item] = asyncio.Queue()
        self._to_start: asyncio.Queue[_Item] = asyncio.Queue()
        self._fetching: dict[AttemptKey, asyncio.Task[None]] = {}

    def begin(self, books: Launches) -> None:
        """Start the workers."""
        self._books = books
        self._chores.spawn(self._record_work(), "launch recorder")
        for number in range(WORKERS):
            self._chores.spawn(self._start_work(), f"starter {number}")
            if self._spaces is not None:
                self._chores.spawn(self._prepare_work(self._spaces), f"preparer {number}")

    def submit(self, key: AttemptKey, order: Order, launch: Launch, held: Held) -> None:
        """Start an attempt that was never started anywhere."""
        self._enqueue(_Item(key, order, launch, held))

    def abort(self, key: AttemptKey) -> None:
        """Stop preparing an attempt that is not wanted any more."""
        task = self._fetching.get(key)
        if task is not None:
            task.cancel()

    def _enqueue(self, item: _Item) -> None:
        """Put the attempt where it goes on; dropped when its end has come meanwhile."""
        phase = item.held.phase
        if phase is Phase.LAUNCHING:
            (self._to_start if item.recorded else self._to_record).put_nowait(item)
        elif phase is not Phase.PREPARING:
            return
        elif self._spaces is None or item.ready:
            self._to_record.put_nowait(item)
        elif item.launch.inputs:
            work = self._fetch(self._spaces, item)
            self._fetching[item.key] = self._chores.spawn(work, f"inputs {item.key}")
        else:
            self._to_prepare.put_nowait(item)

    async def _prepare_work(self, spaces: HasWorkspace) -> None:
        while True:
            item = await self._to_prepare.get()
            await self._guard(item, self._prepare(spaces, item))

    async def _fetch(self, spaces: HasWorkspace, item: _Item) -> None:
        try:
            await self._guard(item, self._prepare(spaces, item))
        finally:
            self._fetching.pop(item.key, None)

    async def _prepare(self, spaces: HasWorkspace, item: _Item) -> None:
        item.workspace = await spaces.prepare(driver_order(item.order, item.launch))
        if item.launch.inputs:
            await fetch_inputs(self._transfers, item.workspace, item.launch.inputs)
        item.ready = True
        self._enqueue(item)

    async def _record_work(self) -> None:
        """Everything that waits is recorded with one sync of the disk."""
        while True:
            batch = [await self._to_record.get()]
            while not self._to_record.empty():
                batch.append(self._to_record.get_nowait())
            wanted = [item for item in batch if self._still_wanted(item)]
            for item in wanted:
                item.held.phase = Phase.LAUNCHING
            try:
                await self._journal.write(*(terms_of(item.order) for item in wanted))
            except Fault as error:
                for item in wanted:
                    self._again(item, error.message)
                continue
            for item in wanted:
                item.recorded = True
                self._to_start.put_nowait(item)

    def _still_wanted(self, item: _Item) -> bool:
        if item.held.phase is Phase.LAUNCHING:  # recorded before, as far as anybody knows
            return not self._give_way(item)
        return item.held.phase is Phase.PREPARING and not self._books.unwanted(item.key)

    async def _start_work(self) -> None:
        while True:
            item = await self._to_start.get()
            await self._guard(item, self._start(item))

    async def _start(self, item: _Item) -> None:
        if self._give_way(item):
            return
        held = item.held
        if not held.confirmed:  # an earlier try may have been accepted without an answer, and seen
            item.asked = True
            order = driver_order(item.order, item.launch)
            if self._tickets is not None and (item.launch.inputs or item.launch.outputs):
                order = replace(order, carry=await self._tickets.plan(item.order.key, item.launch))
            await self._driver.start(order, workspace=item.workspace)
        held.proof = self._books.next_proof()
        held.confirmed = True
        if held.phase is Phase.LAUNCHING:
            held.phase = Phase.LAUNCHED
        self._books.launched(item.key)

    async def _guard(self, item: _Item, work: Coroutine[object, object, None]) -> None:
        """Do one step and see to what comes of it."""
        item.held.busy = True
        try:
            await work
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
        self._books.changed(item.key)
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
