"""Stores log chunks, a few streams at a time and one chunk of a stream at a time."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from functools import partial
from typing import Final, Protocol

import structlog

from verderer.agent.backoff import Backoff
from verderer.agent.chores import Chores
from verderer.agent.files.transfers import Transfers, final
from verderer.agent.journal import Cut, Journal, Shipped
from verderer.agent.logs.stream import Limits, LogStream, Sealed
from verderer.agent.reporter import Reporter
from verderer.agent.session import Superseded
from verderer.core.errors import Fault, NotAuthenticated, VerdererError
from verderer.objects.logs import Chunk, encode_chunk
from verderer.wire.agent import LogFact

log = structlog.get_logger("verderer.agent")

WORKERS: Final = 8
MAX_REFUSALS: Final = 8
"""Refusals in a row after which a stream is given up; with waits between, a minute or so."""
_ENCODE_HERE_BYTES: Final = 4 * 1024


class Acknowledged(Protocol):
    """Told when a sealed chunk is stored and the control plane knows it."""

    def __call__(self, stream: LogStream, until: int, *, complete: bool) -> None: ...


class Uploader:
    """Takes streams that have something to store."""

    def __init__(
        self,
        transfers: Transfers,
        journal: Journal,
        reporter: Reporter,
        limits: Limits,
        acknowledged: Acknowledged,
    ) -> None:
        self.limits = limits
        self.growing = 0
        """Streams with bytes in an unsealed chunk."""
        self._transfers = transfers
        self._journal = journal
        self._reporter = reporter
        self._acknowledged = acknowledged
        self._queue: asyncio.Queue[LogStream] = asyncio.Queue()

    def begin(self, chores: Chores) -> None:
        """Start the workers."""
        self._chores = chores
        for number in range(WORKERS):
            chores.spawn(self._work(), f"log uploader {number}")

    def submit(self, stream: LogStream) -> None:
        """See `Uploads`."""
        if stream.queued:
            return
        if stream.over and all(_silent(one) for one in stream.sealed):
            self._tell(stream, list(stream.sealed))
        else:
            stream.queued = True
            self._queue.put_nowait(stream)

    async def _work(self) -> None:
        while True:
            stream = await self._queue.get()
            try:
                await self._store(stream)
            except Superseded:
                raise
            except Exception as error:  # noqa: BLE001 - one stream must not stop the others
                self._again(stream, error)
                continue
            stream.backoff.reset()
            stream.refusals = 0
            stream.queued = False
            stream.wake_later()
            if stream.sealed:
                self.submit(stream)

    def _again(self, stream: LogStream, error: Exception) -> None:
        if isinstance(error, VerdererError):
            if final(error) or isinstance(error, NotAuthenticated):
                stream.refusals += 1
                stream.grants.clear()
            if stream.backoff.failures in (0, 10, 100):
                log.warning("storing a log failed", attempt=str(stream.key), reason=error.message)
        else:
            log.error("storing a log failed", attempt=str(stream.key), exc_info=error)
        if stream.refusals >= MAX_REFUSALS:
            self._give_up(stream)
        wait = stream.backoff.next_s(error.retry_after_s if isinstance(error, Fault) else 0.0)
        asyncio.get_running_loop().call_later(wait, self._queue.put_nowait, stream)

    def _give_up(self, stream: LogStream) -> None:
        """Nobody wants this log: an orphan's, or one whose run has been deleted."""
        if not stream.gone:
            log.warning("a log is given up", attempt=str(stream.key), replica=stream.replica)
            stream.gone = True

    async def _store(self, stream: LogStream) -> None:
        while stream.sealed:
            await self._store_sealed(stream, list(stream.sealed))
        if stream.due():
            chunk = stream.take()
            try:
                await self._put(stream, stream.sequence, chunk)
            except BaseException:
                stream.put_back()
                raise
            stream.flushed_bytes += len(chunk.data)
            self._reporter.log(_fact(stream, stream.sequence, chunk))
        elif stream.sealed:
            await self._store(stream)

    async def _store_sealed(self, stream: LogStream, some: Sequence[Sealed]) -> None:
        """Store all at once, and tell of them in order.

        Where they end is on record before they are known as sealed. What follows the last cut
        needs no record: its end is the end of all.
        """
        cuts = [
            Cut(str(stream.key), stream.replica, one.sequence, one.until)
            for one in some
            if not one.planned and not one.complete
        ]
        await asyncio.gather(
            self._record(stream, cuts),
            *(self._put(stream, one.sequence, one.chunk) for one in some if not _silent(one)),
        )
        self._tell(stream, some)

    def _tell(self, stream: LogStream, some: Sequence[Sealed]) -> None:
        for one in some:
            # Asked now: while it was on its way the end of the stream may have been reached.
            known = partial(self._known, stream, one, one.complete)
            fact = _fact(stream, one.sequence, one.chunk, sealed=True, complete=one.complete)
            self._reporter.log(fact, known)
            stream.pop()

    async def _record(self, stream: LogStream, cuts: Sequence[Cut]) -> None:
        if not cuts or str(stream.key) not in self._journal.live:
            return
        try:
            await self._journal.write(*cuts)
        except Fault as error:
            # The log goes on; only a crash just now could show some lines twice.
            log.warning("a log's cut is not on record", attempt=str(stream.key), reason=str(error))

    def _known(self, stream: LogStream, one: Sealed, complete: bool) -> None:
        if (_silent(one) and not one.sequence) or str(stream.key) not in self._journal.live:
            self._acknowledged(stream, one.until, complete=complete)
        else:
            self._chores.spawn(self._settle(stream, one, complete), f"log {stream.key} stored")

    async def _settle(self, stream: LogStream, one: Sealed, complete: bool) -> None:
        """Have it on record before the driver is told to let go of the bytes."""
        record = Shipped(
            str(stream.key), stream.replica, one.sequence, one.until, one.chunk.end, complete
        )
        backoff = Backoff()
        while True:
            try:
                await self._journal.write(record)
            except Fault as error:
                log.warning("a stored log is not on record", attempt=record.key, reason=str(error))
                await backoff.wait()
            else:
                break
        self._acknowledged(stream, one.until, complete=complete)

    async def _put(self, stream: LogStream, sequence: int, chunk: Chunk) -> None:
        mark = (chunk.end, len(chunk.gaps))
        if stream.stored.get(sequence) == mark or stream.gone:
            return
        granted = stream.grants.get(sequence)
        if granted is None or not granted.usable:
            key = f"{stream.prefix}{sequence:08d}"
            granted = await self._transfers.granter.grant("PUT", key)
            stream.grants[sequence] = granted
        data = (
            encode_chunk(chunk)
            if len(chunk.data) <= _ENCODE_HERE_BYTES
            else await asyncio.to_thread(encode_chunk, chunk)
        )
        await self._transfers.put_once(granted, data)
        stream.stored[sequence] = mark


def _silent(one: Sealed) -> bool:
    """Whether nothing is in it, and so no object stands for it."""
    return not one.chunk.data and not one.chunk.gaps


def _fact(
    stream: LogStream,
    sequence: int,
    chunk: Chunk,
    *,
    sealed: bool = False,
    complete: bool = False,
) -> LogFact:
    return LogFact(
        key=str(stream.key),
        replica=stream.replica,
        sequence=sequence,
        first_byte=chunk.first_byte,
        size=len(chunk.data),
        lines=chunk.lines,
        lost=sum(gap.lost for gap in chunk.gaps),
        first_unix_ms=chunk.marks[0].unix_ms if chunk.marks else 0,
        last_unix_ms=chunk.marks[-1].unix_ms if chunk.marks else 0,
        sealed=sealed,
        complete=complete,
    )
