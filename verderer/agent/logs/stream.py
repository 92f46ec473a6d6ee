"""One replica's output on its way from the driver into chunks."""

from __future__ import annotations

import asyncio
import time
from collections import deque
from dataclasses import dataclass
from typing import Final, Protocol, runtime_checkable

import structlog

from verderer.agent.backoff import Backoff
from verderer.agent.files.transfers import Granted
from verderer.agent.journal import LogPosition
from verderer.core.errors import Fault, Refusal
from verderer.core.model.attempt import AttemptKey
from verderer.drivers.contract import Driver, LogPiece
from verderer.objects.chunking import SEAL_BYTES, ChunkBuilder, ChunkLimits
from verderer.objects.logs import Chunk

log = structlog.get_logger("verderer.agent")

NOT_GIVEN: Final = "the cluster did not give it back"
_SEALED_AHEAD: Final = 3
_WORTH_SEALING: Final = 64 * 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """How logs are cut and how much of them may be in memory."""

    seal_bytes: int = SEAL_BYTES
    seal_after_s: float = 60.0
    flush_after_s: float = 0.4
    """A little under the half second that a follower may wait, to leave time for storing."""
    memory_bytes: int = 4 * 1024 * 1024
    """Of growing chunks together; with many of them each is sealed earlier."""
    least_bytes: int = 16 * 1024
    """No chunk is sealed below this size for want of memory."""
    many: int = 100
    """Growing chunks above which each is flushed less often."""

    def chunk_limits(self) -> ChunkLimits:
        return ChunkLimits(
            seal_bytes=self.seal_bytes,
            seal_after_s=self.seal_after_s,
            flush_after_s=self.flush_after_s,
        )


@runtime_checkable
class ReleasesLogs(Protocol):
    """Optional ability of a driver: to drop output that is safe elsewhere."""

    async def release_logs(self, key: AttemptKey, *, replica: int, upto: int) -> None:
        """Forget output before the driver's offset `upto`."""
        ...


class Uploads(Protocol):
    """`logs.uploading.Uploader`, as far as streams use it."""

    limits: Limits
    growing: int

    def submit(self, stream: LogStream) -> None:
        """Look at the stream soon: something of it is to be stored."""
        ...


@dataclass(slots=True, kw_only=True)
class Sealed:
    """A finished chunk that is not stored yet."""

    sequence: int
    chunk: Chunk
    until: int
    planned: bool
    """Its end is on record already."""
    complete: bool = False


class LogStream:
    """Filled by `read`, emptied by the uploader."""

    def __init__(
        self, key: AttemptKey, replica: int, prefix: str, at: LogPosition, uploads: Uploads
    ) -> None:
        self.key = key
        self.replica = replica
        self.prefix = prefix
        self.sequence = at.sequence
        """Of the chunk that grows."""
        self.after = at.until
        """The next byte to ask the driver for, as it counts."""
        self.sealed: deque[Sealed] = deque()
        self.over = False
        """Nothing will be added any more."""
        self.gone = False
        """Nobody wants it: it is read to its end, and not stored."""
        self.queued = False
        self.grants: dict[int, Granted] = {}
        """By sequence."""
        self.stored: dict[int, tuple[int, int]] = {}
        """End and number of gaps of what is stored, by sequence."""
        self.flushed_bytes = 0
        """Stored of the growing chunk, counted again each time."""
        self.backoff = Backoff(first_s=0.2)
        self.refusals = 0
        self._uploads = uploads
        self._cuts = dict(at.cuts)
        self._first = at.kept
        self._builder = ChunkBuilder(at.kept, limits=uploads.limits.chunk_limits())
        self._room = asyncio.Event()
        self._sent = asyncio.Event()
        self._timer: asyncio.TimerHandle | None = None

    async def read(self, driver: Driver) -> None:
        """Take everything that the driver gives, from `after` to the end."""
        backoff = Backoff()
        while not self.over:
            try:
                async for piece in driver.logs(self.key, replica=self.replica, after=self.after):
                    await self._take(piece)
                    backoff.reset()
                break
            except Refusal as error:
                log.warning("no more output", attempt=str(self.key), reason=error.message)
                self.finish(cut_short=True)
                break
            except Fault as error:
                log.info("output waits", attempt=str(self.key), reason=error.message)
            except Exception:
                log.exception("reading output failed", attempt=str(self.key))
            await backoff.wait()
        self.finish()
        self._uploads.submit(self)

    def finish(self, *, cut_short: bool = False) -> None:
        """Nothing follows: what is here is the end.

        `cut_short`: the driver has lost the rest. An earlier life may then have stored a part of
        this chunk that cannot be read again, and it must stand.
        """
        if self.over:
            return
        self.over = True
        if self._builder.empty and cut_short:
            self.sequence += 1
        if not self._builder.empty or not self.sealed:
            self._seal()
        self.sealed[-1].complete = True

    async def sent(self) -> None:
        """Return once all is stored."""
        while self.sealed:
            self._sent.clear()
            await self._sent.wait()

    def due(self) -> bool:
        """Whether the growing chunk is to be stored as it stands. Seals it when it is old."""
        now = time.monotonic()
        if self._builder.empty:
            return False
        old = self._builder.should_seal(now) or self._costs_too_much()
        # One whose end is on record from an earlier life is never cut anywhere else.
        if old and self.sequence not in self._cuts:
            self._seal()
            return False
        return self._builder.should_flush(now)

    def take(self) -> Chunk:
        """The growing chunk as it stands."""
        return self._builder.take()

    def put_back(self) -> None:
        """The growing chunk could not be stored."""
        self._builder.put_back(time.monotonic())

    def pop(self) -> None:
        """The oldest sealed chunk is stored."""
        done = self.sealed.popleft().sequence
        self.grants.pop(done, None)
        self.stored.pop(done, None)
        self._room.set()
        if not self.sealed:
            self._sent.set()

    def wake_later(self) -> None:
        """See to it that the uploader looks when the growing chunk is next due."""
        due = self._builder.due_s()
        if due is None:
            return
        loop, limits = asyncio.get_running_loop(), self._uploads.limits
        wait = max(0.0, due - time.monotonic())
        if wait <= limits.flush_after_s:
            wait *= max(1.0, self._uploads.growing / limits.many)
        if self._timer is not None:
            if self._timer.when() <= loop.time() + wait:
                return
            self._timer.cancel()
        self._timer = loop.call_later(wait, self._due)

    def _due(self) -> None:
        self._timer = None
        self._uploads.submit(self)

    async def _take(self, piece: LogPiece) -> None:
        now = time.monotonic()
        data = piece.data
        if piece.offset > self.after:
            self._gap(piece.offset - self.after, NOT_GIVEN, piece.offset, now)
        elif piece.offset < self.after:
            data = data[self.after - piece.offset :]
        if piece.lost:
            self._gap(piece.lost, piece.reason, max(self.after, piece.offset + piece.lost), now)
        while data:
            data = self._add(data, piece.unix_ms, now)
            if self._must_seal():
                await self._seal_with_room()
        if self._must_seal():
            await self._seal_with_room()
        self.wake_later()

    def _add(self, data: bytes, unix_ms: int, now: float) -> bytes:
        cut = self._cuts.get(self.sequence)
        part = data if cut is None else data[: max(0, cut - self.after)]
        if self._builder.empty and part:
            self._uploads.growing += 1
        rest = self._builder.add(part, unix_ms=unix_ms, now_s=now)
        taken = len(part) - len(rest)
        self.after += taken
        return data[taken:]

    def _gap(self, lost: int, reason: str, after: int, now: float) -> None:
        if self._builder.empty:
            self._uploads.growing += 1
        self._builder.add_gap(lost, reason, now_s=now)
        self.after = after

    def _must_seal(self) -> bool:
        cut = self._cuts.get(self.sequence)
        if self._builder.full or (cut is not None and self.after >= cut):
            return True
        if cut is not None:
            return False
        limits = self._uploads.limits
        share = limits.memory_bytes // max(1, self._uploads.growing)
        return self._size >= max(limits.least_bytes, min(limits.seal_bytes, share))

    @property
    def _size(self) -> int:
        return self._builder.end - self._first

    def _costs_too_much(self) -> bool:
        """A slow writer's chunk would be stored hundreds of times before it is full."""
        return self._size >= _WORTH_SEALING and self.flushed_bytes >= 8 * self._size

    async def _seal_with_room(self) -> None:
        self._seal()
        self._uploads.submit(self)
        while len(self.sealed) >= _SEALED_AHEAD:
            self._room.clear()
            await self._room.wait()

    def _seal(self) -> None:
        if not self._builder.empty:
            self._uploads.growing -= 1
        self.sealed.append(
            Sealed(
                sequence=self.sequence,
                chunk=self._builder.take(),
                until=self.after,
                planned=self.sequence in self._cuts,
            )
        )
        self._builder = self._builder.successor()
        self._first = self._builder.end
        self.sequence += 1
        self.flushed_bytes = 0
