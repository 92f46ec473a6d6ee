"""Carries facts up in batches and keeps each until the control plane has it.

One request is on its way at a time, so the facts of an attempt arrive in order; what comes up
meanwhile goes with the next. When idle a fact leaves at once; under load requests start at least
`COALESCE_S` apart. That an attempt is starting may wait so long too: most often it runs by then,
and one fact tells both.
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

import structlog

from verderer.agent.backoff import Backoff
from verderer.agent.session import Complaints, Session, pause_s
from verderer.core.errors import Fault, Invalid, NotAuthenticated, Refusal, TooMany, VerdererError
from verderer.wire.agent import AttemptFact, LogFact, NodeFact, Report, WaitFact

log = structlog.get_logger("verderer.agent")

MAX_FACTS: Final = 1_000
COALESCE_S: Final = 0.005
FULL: Final = 20_000
"""Facts in hand above which no new work is taken on."""

Done = Callable[[], None]


@dataclass(slots=True)
class _Item:
    fact: AttemptFact | LogFact
    done: list[Done]
    sent: bool = False


class Reporter:
    """Takes facts from anywhere in the agent, without waiting."""

    def __init__(self, *, max_facts: int = MAX_FACTS, backoff: Backoff | None = None) -> None:
        self._max = max_facts
        self._queue: deque[_Item] = deque()
        self._latest: dict[str | tuple[str, int, int], _Item] = {}
        self._nodes: list[NodeFact] | None = None
        self._waits: dict[str, WaitFact] = {}
        self._woken = asyncio.Event()
        self._room = asyncio.Event()
        self._room.set()
        self._idle = asyncio.Event()
        self._idle.set()
        self._soon: asyncio.TimerHandle | None = None
        self._backoff = backoff or Backoff()

    @property
    def waiting(self) -> int:
        """Facts that are not acknowledged yet."""
        return len(self._queue)

    async def room(self) -> None:
        """Return once there is room for the facts of more work."""
        await self._room.wait()

    def attempt(self, fact: AttemptFact, done: Done | None = None) -> None:
        """Report that an attempt has reached a state; `done` is called when it is known there.

        A `starting` that has not left yet is replaced by what came after it.
        """
        last = self._latest.get(fact.key)
        if last is not None and not last.sent and _is_starting(last.fact):
            last.fact = fact
            _also(last, done)
            self._wake()
            return
        self._put(fact.key, fact, done, hurry=fact.state != "starting")

    def log(self, fact: LogFact, done: Done | None = None) -> None:
        """Report a chunk. One that has not left yet is replaced by the same chunk grown."""
        place = (fact.key, fact.replica, fact.sequence)
        last = self._latest.get(place)
        if last is not None and not last.sent:
            last.fact = fact
            _also(last, done)
            return
        self._put(place, fact, done)

    def nodes(self, nodes: list[NodeFact]) -> None:
        """Report the whole list of nodes; only the latest matters."""
        self._nodes = nodes
        self._wake()

    def wait(self, fact: WaitFact) -> None:
        """Report why an attempt waits; of each only the latest matters."""
        self._waits[fact.key] = fact
        self._wake()

    async def run(self, session: Session) -> None:
        """Send until cancelled.

        Raises:
            Superseded: another agent has taken over.
        """
        complaints = Complaints("reporting to the control plane")
        started = 0.0
        while True:
            await self._woken.wait()
            if 0 < len(self._queue) < self._max:
                await asyncio.sleep(max(0.0, started + COALESCE_S - time.monotonic()))
            started = time.monotonic()
            try:
                await self._send(session)
            except VerdererError as error:
                wait = pause_s(error, self._backoff)
                complaints.trouble(error, retry_s=wait)
                await asyncio.sleep(wait)
                continue
            self._backoff.reset()
            complaints.over()

    async def drain(self, within_s: float) -> bool:
        """Wait until everything is acknowledged; False when time ran out first."""
        try:
            async with asyncio.timeout(within_s):
                await self._idle.wait()
        except TimeoutError:
            return False
        return True

    async def _send(self, session: Session) -> None:
        count = min(self._max, len(self._queue))
        batch = [self._queue[i] for i in range(count)]
        nodes = self._nodes
        for item in batch:
            item.sent = True
        await self._deliver(session, batch, nodes)
        if self._nodes is nodes:
            self._nodes = None
        for _ in batch:
            self._queue.popleft()
        self._rest()
        for item in batch:
            self._acknowledge(item)
        if self._waits:
            await self._send_waits(session)

    async def _send_waits(self, session: Session) -> None:
        """Apart, and after what has become of attempts: it only says why others are not as far."""
        waits = list(self._waits.values())[: self._max]
        report = Report(epoch=session.epoch, waits=waits)
        try:
            await session.call(session.client.report(report))
        except (NotAuthenticated, TooMany, Fault):
            raise
        except Refusal as error:
            if not isinstance(error, Invalid) and error.code != "too_large":
                raise
            log.error("reasons to wait dropped", count=len(waits), reason=error.message)
        for one in waits:
            if self._waits.get(one.key) is one:
                del self._waits[one.key]
        self._rest()

    async def _deliver(
        self, session: Session, batch: Sequence[_Item], nodes: list[NodeFact] | None
    ) -> None:
        """Send `batch`; when it is refused as a whole, find the fact that is to blame."""
        report = Report(
            epoch=session.epoch,
            attempts=[item.fact for item in batch if isinstance(item.fact, AttemptFact)],
            logs=[item.fact for item in batch if isinstance(item.fact, LogFact)],
            nodes=nodes,
        )
        try:
            answer = await session.call(session.client.report(report))
        except (NotAuthenticated, TooMany, Fault):
            raise
        except Refusal as error:
            if not isinstance(error, Invalid) and error.code != "too_large":
                raise
            await self._divide(session, batch, nodes, error)
            return
        for refused in answer.refused:
            log.info("report refused", attempt=refused.key, reason=refused.reason)

    async def _divide(
        self,
        session: Session,
        batch: Sequence[_Item],
        nodes: list[NodeFact] | None,
        error: Refusal,
    ) -> None:
        if nodes is not None and batch:
            await self._deliver(session, batch, None)
            await self._deliver(session, [], nodes)
        elif len(batch) > 1:
            half = len(batch) // 2
            await self._deliver(session, batch[:half], None)
            await self._deliver(session, batch[half:], None)
        else:
            # One fact that the server will never take: keeping it would stop all others.
            what = batch[0].fact.key if batch else "nodes"
            log.error("report dropped", what=what, reason=error.message, hint=error.hint)

    def _put(
        self,
        place: str | tuple[str, int, int],
        fact: AttemptFact | LogFact,
        done: Done | None,
        *,
        hurry: bool = True,
    ) -> None:
        item = _Item(fact, [done] if done is not None else [])
        self._queue.append(item)
        self._latest[place] = item
        if hurry:
            self._wake()
        elif self._soon is None and not self._woken.is_set():
            self._idle.clear()
            self._soon = asyncio.get_running_loop().call_later(COALESCE_S, self._wake)

    def _acknowledge(self, item: _Item) -> None:
        fact = item.fact
        place: str | tuple[str, int, int] = (
            fact.key if isinstance(fact, AttemptFact) else (fact.key, fact.replica, fact.sequence)
        )
        if self._latest.get(place) is item:
            del self._latest[place]
        for done in item.done:
            done()

    def _wake(self) -> None:
        if self._soon is not None:
            self._soon.cancel()
            self._soon = None
        self._woken.set()
        self._idle.clear()
        if len(self._queue) >= FULL:
            self._room.clear()

    def _rest(self) -> None:
        if len(self._queue) < FULL // 2:
            self._room.set()
        if not self._queue and self._nodes is None and not self._waits:
            self._woken.clear()
            self._idle.set()


def _also(item: _Item, done: Done | None) -> None:
    if done is not None:
        item.done.append(done)


def _is_starting(fact: AttemptFact | LogFact) -> bool:
    return isinstance(fact, AttemptFact) and fact.state == "starting"
