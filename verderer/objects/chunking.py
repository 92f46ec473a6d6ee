"""Fills log chunks from a live stream and says when each is due.

Rules: a chunk is sealed at 512 KiB or 60 s after its first byte. Until then it is written again
under the same key at most half a second after new bytes came, so that a follower sees them at once
and a quiet step costs few objects. Times are the caller's: `now_s` is monotonic, `unix_ms` is what
a person reads.
"""

from __future__ import annotations

from dataclasses import dataclass

from verderer.objects.logs import Chunk, Gap, Mark

SEAL_BYTES = 512 * 1024
SEAL_AFTER_S = 60.0
FLUSH_AFTER_S = 0.5
_MARK_EVERY_MS = 10
# A clock that jumps to and fro, or a source that keeps losing bytes, must not grow a header
# without end; at the limit the chunk is due.
_MAX_MARKS = 8192
_MAX_GAPS = 512


@dataclass(frozen=True, slots=True)
class ChunkLimits:
    """When a chunk is sealed or written in part."""

    seal_bytes: int = SEAL_BYTES
    seal_after_s: float = SEAL_AFTER_S
    flush_after_s: float = FLUSH_AFTER_S


class ChunkBuilder:
    """One chunk being filled. `successor` begins the next one where it ends."""

    def __init__(self, first_byte: int = 0, *, limits: ChunkLimits | None = None) -> None:
        self._limits = limits or ChunkLimits()
        self._first_byte = first_byte
        self._data = bytearray()
        self._marks: list[Mark] = []
        self._gaps: list[Gap] = []
        self._began_s: float | None = None
        self._dirty_since_s: float | None = None

    @property
    def end(self) -> int:
        """Offset in the stream of the next byte."""
        return self._first_byte + len(self._data)

    @property
    def empty(self) -> bool:
        """Whether it holds neither byte nor gap; an empty chunk is never due."""
        return self._began_s is None

    @property
    def full(self) -> bool:
        """Whether it must be sealed before it takes more."""
        return (
            len(self._data) >= self._limits.seal_bytes
            or len(self._marks) >= _MAX_MARKS
            or len(self._gaps) >= _MAX_GAPS
        )

    def add(self, data: bytes, *, unix_ms: int, now_s: float) -> bytes:
        """Take as many bytes as fit and return the rest, which belong to the successor."""
        if not data or self.full:
            return data
        taken = data[: self._limits.seal_bytes - len(self._data)]
        self._mark(unix_ms)
        self._data += taken
        self._touch(now_s)
        return data[len(taken) :]

    def add_gap(self, lost: int, reason: str, *, now_s: float) -> None:
        """Note that `lost` bytes (0: unknown) are missing here. Never refused, but look at `full`.

        Losses at the same place for the same reason are one gap, unknown if any is.
        """
        last = self._gaps[-1] if self._gaps else None
        if last and last.offset == self.end and last.reason == reason:
            known = lost and last.lost
            self._gaps[-1] = Gap(self.end, last.lost + lost if known else 0, reason)
        else:
            self._gaps.append(Gap(self.end, lost, reason))
        self._touch(now_s)

    def should_seal(self, now_s: float) -> bool:
        """Whether the chunk is finished: full, or old enough."""
        return self.full or (
            self._began_s is not None and now_s - self._began_s >= self._limits.seal_after_s
        )

    def should_flush(self, now_s: float) -> bool:
        """Whether what came in must be written now, though the chunk is not finished."""
        return (
            self._dirty_since_s is not None
            and now_s - self._dirty_since_s >= self._limits.flush_after_s
        )

    def due_s(self) -> float | None:
        """The monotonic time at which the chunk will next be due; None while it is empty."""
        if self._began_s is None:
            return None
        seal = self._began_s + self._limits.seal_after_s
        if self._dirty_since_s is None:
            return seal
        return min(seal, self._dirty_since_s + self._limits.flush_after_s)

    def take(self) -> Chunk:
        """The chunk as it stands, to be written; nothing is due until more comes.

        After a failed write call `put_back`, so that it is tried again.
        """
        self._dirty_since_s = None
        return Chunk(self._first_byte, bytes(self._data), tuple(self._marks), tuple(self._gaps))

    def put_back(self, now_s: float) -> None:
        """What was taken could not be written: it is due again after the flush time."""
        if not self.empty and self._dirty_since_s is None:
            self._dirty_since_s = now_s

    def successor(self) -> ChunkBuilder:
        """An empty chunk that begins where this one ends."""
        return ChunkBuilder(self.end, limits=self._limits)

    def _mark(self, unix_ms: int) -> None:
        last = self._marks[-1] if self._marks else None
        if last is None or not 0 <= unix_ms - last.unix_ms < _MARK_EVERY_MS:
            self._marks.append(Mark(self.end, unix_ms))

    def _touch(self, now_s: float) -> None:
        if self._began_s is None:
            self._began_s = now_s
        if self._dirty_since_s is None:
            self._dirty_since_s = now_s
