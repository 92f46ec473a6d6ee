"""Who waits for news is woken by a row that was committed, never by the one who wrote it.

One connection in a process listens, one notifies. NOTIFY inside a writing transaction takes a
lock of the whole server until it commits, so topics are collected and sent afterwards, at most
once in a few milliseconds, on a connection whose commits need not reach the disk. A lost
notification is no harm: every waiter also looks by itself after a while.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections import defaultdict
from collections.abc import Callable, Iterable
from typing import Any

import asyncpg
import structlog

from verderer.core.errors import Fault
from verderer.store.database import Database

_CHANNEL = "verderer"
# For this statement alone: through a pooler a setting of the session would reach other people's
# commits, which must be safe on disk.
_NOTIFY = "SELECT set_config('synchronous_commit', 'off', true), pg_notify($1, $2)"
_MAX_PAYLOAD = 7_000  # PostgreSQL refuses 8,000 bytes
_COALESCE_S = 0.001

log = structlog.get_logger(__name__)


class Wakeups:
    """Topics are short words such as `queue`, `cluster:3`, `run:123`."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._dirty: set[str] = set()
        self._poke = asyncio.Event()
        self._waiters: defaultdict[str, set[asyncio.Event]] = defaultdict(set)
        self._hooks: list[Callable[[str], None]] = []
        self._tasks: list[asyncio.Task[None]] = []

    async def start(self) -> None:
        """Begin to listen and to send; both come back by themselves after a lost connection."""
        self._tasks = [
            asyncio.create_task(self._forever(self._listen), name="wakeups-listen"),
            asyncio.create_task(self._forever(self._send), name="wakeups-send"),
        ]

    async def stop(self) -> None:
        """Stop both; what was not sent yet is not sent."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def wake(self, topics: Iterable[str]) -> None:
        """Tell everybody, this process included, that something about `topics` was committed."""
        for topic in topics:
            self._dirty.add(topic)
            self._ring(topic)
        self._poke.set()

    def hook(self, callback: Callable[[str], None]) -> None:
        """Call `callback` with every topic that is heard, in the event loop; it must not block."""
        self._hooks.append(callback)

    @contextlib.contextmanager
    def listening(self, *topics: str) -> Any:
        """Give an `asyncio.Event` that is set whenever one of `topics` is woken.

        Open it before looking at the rows, or news between the look and the wait is missed.
        """
        event = asyncio.Event()
        for topic in topics:
            self._waiters[topic].add(event)
        try:
            yield event
        finally:
            for topic in topics:
                waiting = self._waiters[topic]
                waiting.discard(event)
                if not waiting:
                    del self._waiters[topic]

    def _ring(self, topic: str) -> None:
        for event in self._waiters.get(topic, ()):
            event.set()
        for callback in self._hooks:
            callback(topic)

    def _ring_all(self) -> None:
        for topic in list(self._waiters):
            self._ring(topic)

    async def _forever(self, work: Callable[[], Any]) -> None:
        while True:
            try:
                await work()
            except (Fault, asyncpg.PostgresError, asyncpg.InterfaceError, OSError) as e:
                log.warning("wakeups lost their connection", error=str(e))
            await asyncio.sleep(0.3)

    async def _listen(self) -> None:
        async with self._database.own_connection() as connection:
            await self._warn_of_pooler(connection)
            gone = asyncio.Event()
            connection.add_termination_listener(lambda _: gone.set())
            await connection.add_listener(_CHANNEL, self._heard)
            self._ring_all()  # news may have passed while nobody listened
            await gone.wait()
            raise Fault("the listening connection ended")

    async def _warn_of_pooler(self, connection: asyncpg.Connection[Any]) -> None:
        # A pooler makes up the number under which it would cancel for us.
        if await connection.fetchval("SELECT pg_backend_pid()") != connection.get_server_pid():
            log.warning(
                "a pooler stands before the database; in transaction mode it keeps news from us, "
                "and every change is seen a second or more late",
                hint="set database.direct_url to the database's own address",
            )

    def _heard(self, _connection: object, _pid: int, _channel: str, payload: object) -> None:
        for topic in str(payload).split(" "):
            self._ring(topic)

    async def _send(self) -> None:
        async with self._database.own_connection() as connection:
            while True:
                await self._poke.wait()
                self._poke.clear()
                topics, self._dirty = self._dirty, set()
                try:
                    for payload in _packed(topics):
                        await connection.execute(_NOTIFY, _CHANNEL, payload)
                except BaseException:
                    self._dirty |= topics
                    self._poke.set()
                    raise
                await asyncio.sleep(_COALESCE_S)


def _packed(topics: set[str]) -> list[str]:
    payloads: list[str] = []
    line: list[str] = []
    size = 0
    for topic in sorted(topics):
        if size + len(topic) + 1 > _MAX_PAYLOAD:
            payloads.append(" ".join(line))
            line, size = [], 0
        line.append(topic)
        size += len(topic) + 1
    if line:
        payloads.append(" ".join(line))
    return payloads
