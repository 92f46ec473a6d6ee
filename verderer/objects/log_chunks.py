"""Fetches log chunks, with a small memory of those read lately."""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass
from typing import Protocol, Self

from verderer.core.errors import Invalid, NotFound
from verderer.objects.logs import Chunk, decode_chunk
from verderer.objects.store import ObjectStore

CACHE_BYTES = 32 * 1024 * 1024
_MOST_KEPT = 4096
MISSING = "the stored chunk is missing"
DAMAGED = "the stored chunk is damaged"
SHORT = "the stored chunk is incomplete"


class ChunkRow(Protocol):
    """What is read of a chunk's row."""

    @property
    def replica(self) -> int: ...
    @property
    def sequence(self) -> int: ...
    @property
    def first_byte(self) -> int: ...
    @property
    def size(self) -> int: ...
    @property
    def sealed(self) -> bool: ...


@dataclass(frozen=True, slots=True)
class ChunkInfo:
    """What the database says about one chunk of one replica's output."""

    seq: int
    """From 0, without holes in a whole log."""
    first_byte: int
    length: int
    """Raw bytes."""
    key: str
    sealed: bool
    """False while the object is still written again under the same key."""

    @classmethod
    def below(cls, prefix: str, row: ChunkRow) -> Self:
        """The chunk of an attempt whose logs lie below `prefix`, see `core.model.places`."""
        key = f"{prefix}{row.replica}/{row.sequence:08d}"
        return cls(row.sequence, row.first_byte, row.size, key, row.sealed)

    @property
    def end(self) -> int:
        """Offset just after its last byte."""
        return self.first_byte + self.length


@dataclass(frozen=True, slots=True)
class Fetched:
    """What there is of a chunk."""

    info: ChunkInfo
    chunk: Chunk
    missing: str = ""
    """Why the bytes from `chunk.end` to `info.end` are not there; empty when they are."""


class ChunkSource:
    """Reads chunks of any log from one store, keeping the latest in memory.

    One may serve a whole process: what is kept is bounded in bytes, and a chunk that was written
    again has another length, hence another entry.
    """

    def __init__(self, store: ObjectStore, *, cache_bytes: int = CACHE_BYTES) -> None:
        self._store = store
        self._limit = cache_bytes
        self._kept: OrderedDict[tuple[str, int, bool], Chunk] = OrderedDict()
        self._size = 0

    async def fetch(self, info: ChunkInfo) -> Fetched:
        """The chunk as it stood when `info` was written.

        One that is missing, damaged or too short is no error but says so, so that the rest of the
        log can still be read. A chunk that has grown since is cut.

        Raises:
            Fault: the store does not answer; try again.
        """
        # Whether it is sealed belongs to the name: a gap at the end changes no length.
        name = (info.key, info.length, info.sealed)
        if (kept := self._kept.get(name)) is not None:
            self._kept.move_to_end(name)
            return Fetched(info, kept)
        try:
            chunk = decode_chunk(await self._store.get(info.key))
        except NotFound:
            # A log that ends without another byte is told by an entry that needs no object.
            return _nothing(info, MISSING if info.length else "")
        except Invalid:
            return _nothing(info, DAMAGED)
        if chunk.first_byte != info.first_byte:
            return _nothing(info, DAMAGED)
        if chunk.end < info.end:
            return Fetched(info, chunk, SHORT)
        chunk = _cut(chunk, info)
        self._keep(name, chunk)
        return Fetched(info, chunk)

    def _keep(self, name: tuple[str, int, bool], chunk: Chunk) -> None:
        if len(chunk.data) > self._limit or name in self._kept:
            return
        self._kept[name] = chunk
        self._size += len(chunk.data)
        while self._size > self._limit or len(self._kept) > _MOST_KEPT:
            _, oldest = self._kept.popitem(last=False)
            self._size -= len(oldest.data)


def _cut(chunk: Chunk, info: ChunkInfo) -> Chunk:
    """The part of what was read that `info` speaks of."""
    if chunk.end == info.end:
        return chunk
    return Chunk(
        chunk.first_byte,
        chunk.data[: info.length],
        tuple(mark for mark in chunk.marks if mark.offset < info.end),
        # One at the very end may have grown with what came later; it is read with that.
        tuple(gap for gap in chunk.gaps if gap.offset < info.end),
    )


def _nothing(info: ChunkInfo, reason: str) -> Fetched:
    return Fetched(info, Chunk(info.first_byte, b""), reason)
