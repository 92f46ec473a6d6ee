"""What the agent must still know after it has been killed, in one append-only file.

A launch is recorded and synced to disk before the driver hears of it: after a crash the agent can
tell what it may have started from what it has never touched. Concurrent durable writes share one
sync. Zeros are written ahead of the records, since syncing a file that grows takes ten times as
long; they, or a tail torn by a crash, end the reading when the file is opened.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import time
import zlib
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import msgspec

from verderer.core.errors import Fault
from verderer.wire.agent import EndFact, OutputFile, StoredOutput

_HEADER_BYTES: Final = 8  # length and CRC-32 of what follows, 4 bytes each, big-endian
_MAX_RECORD: Final = 16 * 1024 * 1024
_LAZY_S: Final = 0.02
_AHEAD_BYTES: Final = 1024 * 1024
_QUICK_S: Final = 0.002
_QUICK_IN_A_ROW: Final = 32


class _Record(msgspec.Struct, array_like=True):
    key: str


class Launched(_Record, tag=1):
    """The driver is about to be asked to start `key`; the rest outlives its order."""

    log_prefix: str = ""
    replicas: int = 1
    outputs: list[OutputFile] = []


class Decided(_Record, tag=2):
    """An end that the driver does not know, or whose outputs are stored already."""

    end: EndFact
    state: str = "failed"
    at_unix_ms: int = 0
    outputs: list[StoredOutput] = []


class Cut(_Record, tag=3):
    """Log chunk `sequence` of a replica ends before the driver's offset `until`, for ever."""

    replica: int
    sequence: int
    until: int


class Shipped(_Record, tag=4):
    """Chunks up to `sequence`, which ends before `until`, are stored and acknowledged."""

    replica: int
    sequence: int
    until: int
    kept: int
    complete: bool = False


class Dropped(_Record, tag=5):
    """Nothing is left to be done for `key`."""


Record = Launched | Decided | Cut | Shipped | Dropped


@dataclass(slots=True)
class LogPosition:
    """Where the log of one replica stands."""

    sequence: int = 0
    """The next chunk to be stored."""
    until: int = 0
    """Where it begins for the driver, which counts lost bytes too."""
    kept: int = 0
    """Where it begins for readers, who count only bytes that were kept."""
    cuts: dict[int, int] = field(default_factory=dict)
    """Ends that are promised for chunks from `sequence` on."""
    complete: bool = False


@dataclass(slots=True)
class Memory:
    """What the records of one attempt amount to."""

    launched: Launched
    decided: Decided | None = None
    logs: dict[int, LogPosition] = field(default_factory=dict)

    def position(self, replica: int) -> LogPosition:
        return self.logs.setdefault(replica, LogPosition())


class Journal:
    """The file and, in `live`, what it amounts to. One process at a time may have it open."""

    def __init__(self, path: Path, *, compact_bytes: int = 8 * 1024 * 1024) -> None:
        """Open, creating it or cutting off a torn tail.

        Raises:
            Fault: the disk will not let us.
        """
        self.live: dict[str, Memory] = {}
        self._path = path
        self._compact_bytes = compact_bytes
        self._encoder = msgspec.msgpack.Encoder()
        self._buffer: list[bytes] = []
        self._waiting: list[asyncio.Future[None]] = []
        self._flushing: asyncio.Task[None] | None = None
        self._lazy: asyncio.TimerHandle | None = None
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="journal")
        self._quick = _QUICK_IN_A_ROW
        """Writes in a row that took less than `_QUICK_S`."""
        try:
            self._file, self._size = self._open()
            self._allocated = self._size
            self._write(b"", sync=True)
        except OSError as error:
            raise _fault(path, error) from error
        self._compact_at = max(compact_bytes, 2 * self._size)

    async def write(self, *records: Record) -> None:
        """Append and return once they are on the disk, for good.

        Raises:
            Fault: they are not; whether they will turn up later is uncertain, so that the caller
                must act as if they might.
        """
        self._append(records)
        future = asyncio.get_running_loop().create_future()
        self._waiting.append(future)
        if self._flushing is None:
            self._flushing = asyncio.create_task(self._flush(), name="journal")
        await future

    def note(self, *records: Record) -> None:
        """Append soon, without syncing: what costs only repeated work when it is lost."""
        self._append(records)
        if self._lazy is None and self._flushing is None:
            loop = asyncio.get_running_loop()
            self._lazy = loop.call_later(_LAZY_S, self._start_flush)

    async def close(self) -> None:
        """Write out what is noted and close the file."""
        if self._lazy is not None:
            self._lazy.cancel()
        with contextlib.suppress(Fault):
            await self.write()
        if self._flushing is not None:
            await self._flushing
        self._thread.shutdown(wait=True)
        os.close(self._file)

    def _append(self, records: Sequence[Record]) -> None:
        for record in records:
            apply(self.live, record)
            self._buffer.append(frame(self._encoder.encode(record)))

    def _start_flush(self) -> None:
        self._lazy = None
        if self._flushing is None:
            self._flushing = asyncio.create_task(self._flush(), name="journal")

    async def _flush(self) -> None:
        try:
            while self._buffer or self._waiting:
                data, self._buffer = b"".join(self._buffer), []
                waiting, self._waiting = self._waiting, []
                try:
                    await self._do(self._work(data, sync=bool(waiting)))
                except OSError as error:
                    self._buffer.insert(0, data)
                    _settle(waiting, _fault(self._path, error))
                    return
                _settle(waiting, None)
        finally:
            self._flushing = None

    async def _do(self, work: Callable[[], None]) -> None:
        """On a quick disk at once; handing over to a thread and back would take longer."""
        began = time.monotonic()
        if self._quick >= _QUICK_IN_A_ROW:
            work()
        else:
            loop = asyncio.get_running_loop()
            began = await loop.run_in_executor(self._thread, _timed, work)
        self._quick = self._quick + 1 if time.monotonic() - began < _QUICK_S else 0

    def _work(self, data: bytes, *, sync: bool) -> Callable[[], None]:
        if self._size + len(data) < self._compact_at:
            return lambda: self._write(data, sync=sync)
        # `live` holds what `data` says as well, so that the new file needs nothing else.
        whole = b"".join(frame(self._encoder.encode(r)) for r in records_of(self.live))
        return lambda: self._replace(whole, data)

    def _write(self, data: bytes, *, sync: bool) -> None:
        try:
            if self._size + len(data) >= self._allocated:
                _write_at(self._file, self._size, bytes(len(data) + _AHEAD_BYTES))
                self._allocated = self._size + len(data) + _AHEAD_BYTES
            _write_at(self._file, self._size, data)
            if sync:
                os.fdatasync(self._file)
        except OSError:
            # A part of a record must not stand in front of the ones that come later.
            os.ftruncate(self._file, self._size)
            self._allocated = self._size
            raise
        self._size += len(data)

    def _replace(self, whole: bytes, data: bytes) -> None:
        try:
            self._compact(whole)
        except OSError:
            # No room for a second file beside the first: go on with the first for now.
            self._compact_at *= 2
            self._write(data, sync=True)

    def _compact(self, whole: bytes) -> None:
        new = self._path.with_suffix(".new")
        file = os.open(new, os.O_CREAT | os.O_TRUNC | os.O_WRONLY | os.O_CLOEXEC, 0o600)
        try:
            _write_at(file, 0, whole)
            os.fsync(file)
            new.replace(self._path)
            _sync_directory(self._path.parent)
        except OSError:
            os.close(file)
            raise
        os.close(self._file)
        self._file, self._size = file, len(whole)
        self._allocated = self._size
        self._compact_at = max(self._compact_bytes, 4 * self._size)

    def _open(self) -> tuple[int, int]:
        file = os.open(self._path, os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600)
        good = 0
        with os.fdopen(os.dup(file), "rb") as reader:
            while (payload := _read_frame(reader.read)) is not None:
                try:
                    record = msgspec.msgpack.decode(payload, type=Record)
                except msgspec.DecodeError:
                    break
                apply(self.live, record)
                good += _HEADER_BYTES + len(payload)
        os.ftruncate(file, good)
        _sync_directory(self._path.parent)
        return file, good


def apply(live: dict[str, Memory], record: Record) -> None:
    """Bring `live` up to date with one more record."""
    if isinstance(record, Launched):
        live.setdefault(record.key, Memory(record))
        return
    if isinstance(record, Dropped):
        live.pop(record.key, None)
        return
    memory = live.get(record.key)
    if memory is None:
        return
    if isinstance(record, Decided):
        memory.decided = record
        return
    position = memory.position(record.replica)
    if isinstance(record, Cut):
        position.cuts[record.sequence] = record.until
    elif record.sequence >= position.sequence:
        position.sequence = record.sequence + 1
        position.until, position.kept = record.until, record.kept
        position.complete = record.complete
        position.cuts = {s: u for s, u in position.cuts.items() if s > record.sequence}


def records_of(live: dict[str, Memory]) -> list[Record]:
    """The fewest records that amount to `live`."""
    records: list[Record] = []
    for key, memory in live.items():
        records.append(memory.launched)
        if memory.decided is not None:
            records.append(memory.decided)
        for replica, at in memory.logs.items():
            if at.sequence:
                records.append(
                    Shipped(key, replica, at.sequence - 1, at.until, at.kept, at.complete)
                )
            records.extend(Cut(key, replica, number, until) for number, until in at.cuts.items())
    return records


def frame(payload: bytes) -> bytes:
    """`payload` with its length and checksum in front."""
    head = len(payload).to_bytes(4, "big") + zlib.crc32(payload).to_bytes(4, "big")
    return head + payload


def _read_frame(read: Callable[[int], bytes]) -> bytes | None:
    head = read(_HEADER_BYTES)
    if len(head) < _HEADER_BYTES:
        return None
    length, checksum = int.from_bytes(head[:4], "big"), int.from_bytes(head[4:], "big")
    if not 0 < length <= _MAX_RECORD:
        return None
    payload = read(length)
    return payload if len(payload) == length and zlib.crc32(payload) == checksum else None


def _write_at(file: int, offset: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        done = os.pwrite(file, view, offset)
        view, offset = view[done:], offset + done


def _timed(work: Callable[[], None]) -> float:
    began = time.monotonic()
    work()
    return began


def _settle(waiting: list[asyncio.Future[None]], error: Fault | None) -> None:
    for future in waiting:
        if future.done():
            continue
        if error is None:
            future.set_result(None)
        else:
            future.set_exception(error)


def _sync_directory(path: Path) -> None:
    directory = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(directory)
    finally:
        os.close(directory)


def _fault(path: Path, error: OSError) -> Fault:
    return Fault(
        f"the agent's journal {path} cannot be written: {error.strerror or error}",
        hint="free space on that disk, or give the agent's user the right to write there",
    )
