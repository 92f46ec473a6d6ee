"""A reader's place in one container's output: what is new of an answer that overlaps. No I/O."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from verderer.drivers.contract import LogPiece
from verderer.drivers.kubernetes.logs.lines import LineReader, Part
from verderer.drivers.kubernetes.logs.marks import START, Mark, Marks, after_line

MAX_PIECE: Final = 256 * 1024
ROTATED: Final = "the node had rotated it away before it was read; how much is not known"
_NS: Final = 1_000_000_000


class Position:
    """Counts bytes from a mark on, and gives those from `after` on."""

    def __init__(self, marks: Marks, after: int) -> None:
        self.after = after
        self._marks = marks
        self._mark = marks.before(after)
        self._clock_ms = self._mark.stamp_ns // 1_000_000
        self._begin()

    @property
    def since(self) -> str:
        """For `sinceTime`: the second of the last line; empty to read from the beginning."""
        return str(self._mark.stamp_ns // _NS) if self._mark.stamp_ns else ""

    def answer(self) -> None:
        """A new answer begins, which may repeat lines since the last one."""
        self._begin()

    def feed(self, data: bytes) -> Iterator[LogPiece]:
        """What is new in `data`, in pieces of one millisecond each."""
        yield from self._pieces(self._reader.feed(data))

    def rest(self) -> Iterator[LogPiece]:
        """What is new in what is left, once the container has ended."""
        yield from self._pieces(self._reader.rest())

    def lost(self, reason: str) -> LogPiece:
        """A hole of unknown size, counted as one byte."""
        piece = LogPiece(offset=self._offset, unix_ms=self._clock_ms, lost=1, reason=reason)
        self._offset += 1
        self.after = max(self.after, self._offset)
        self._mark = Mark(self._offset, self._mark.stamp_ns, self._mark.lines)
        return piece

    def _begin(self) -> None:
        self._reader = LineReader()
        self._offset = self._mark.offset
        self._repeated = self._mark.lines
        """Lines with the mark's stamp that are still to be passed over."""
        self._passing = False
        self._checked = self._mark == START

    def _pieces(self, parts: Iterator[Part]) -> Iterator[LogPiece]:
        held, when = bytearray(), self._clock_ms
        for part in parts:
            if part.first:
                self._passing = self._is_known(part)
                if not self._passing and not self._checked:
                    self._checked = True
                    if self._repeated == self._mark.lines:
                        yield self.lost(ROTATED)
            if self._passing:
                continue
            data = self._new(part)
            ms = part.stamp_ns // 1_000_000 or self._clock_ms
            if held and (ms != when or len(held) >= MAX_PIECE):
                yield self._piece(held, when)
                held = bytearray()
            when = self._clock_ms = ms
            held += data
        if held:
            yield self._piece(held, when)

    def _is_known(self, part: Part) -> bool:
        if part.stamp_ns < self._mark.stamp_ns and part.stamp_ns:
            return True
        if part.stamp_ns == self._mark.stamp_ns and self._repeated:
            self._repeated -= 1
            return True
        return False

    def _new(self, part: Part) -> bytes:
        """The bytes of `part` from `after` on; the place moves behind it."""
        begin = self._offset
        self._offset += len(part.data)
        if part.last:
            self._mark = after_line(self._mark, self._offset, part.stamp_ns)
            self._marks.note(self._mark)
        return part.data[max(0, self.after - begin) :]

    def _piece(self, held: bytearray, when: int) -> LogPiece:
        piece = LogPiece(offset=self.after, unix_ms=when, data=bytes(held))
        self.after += len(held)
        return piece
