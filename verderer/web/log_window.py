"""Any few hundred lines of a log by their number, read from the chunks that hold them.

Lines are counted by line feeds, which the database knows for every chunk, so the viewer can scroll
to the middle of a million lines and only that part is read. What a program overwrote on its line
(a progress bar and its carriage returns) is shown as a terminal would: the last of it.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from typing import Final

from verderer.objects.log_chunks import ChunkInfo, ChunkSource
from verderer.objects.logs import Chunk
from verderer.web.ansi import to_text

MOST: Final = 1_000
_MOST_SHOWN: Final = 16 * 1024
ERRORS: Final = re.compile(
    r"\b(error|exception|traceback|fatal|panic|killed|oom|segfault|failed)\b", re.IGNORECASE
)


@dataclass(frozen=True, slots=True)
class Part:
    """A chunk, and how many line feeds are in it."""

    info: ChunkInfo
    feeds: int


@dataclass(frozen=True, slots=True)
class Row:
    """One line of the viewer."""

    number: int
    """From 0."""
    unix_ms: int
    text: str
    more: int = 0
    """Bytes of the line that are not shown."""
    gap: str = ""
    """Not empty: output is missing here, and this says why."""
    lost: int = 0


class LogWindow:
    """The log of one replica, as it stood when its chunks were listed."""

    def __init__(self, source: ChunkSource, parts: Sequence[Part]) -> None:
        self._source = source
        self._parts = sorted(parts, key=lambda p: p.info.seq)
        self._before = [0]
        for part in self._parts:
            self._before.append(self._before[-1] + part.feeds)

    @property
    def feeds(self) -> int:
        """Lines that are finished; one more may have begun."""
        return self._before[-1]

    @property
    def bytes(self) -> int:
        """Raw bytes that are kept."""
        return sum(part.info.length for part in self._parts)

    async def rows(self, first: int, count: int) -> list[Row]:
        """At most `count` lines from number `first` on.

        Raises:
            Fault: the store does not answer.
        """
        found: list[Row] = []
        async for row in self._walk(max(0, first)):
            if row.number >= first + min(count, MOST):
                break
            found.append(row)
        return found

    async def find(
        self, text: str, *, first: int = 0, limit: int = 1, most_bytes: int = 64 * 2**20
    ) -> tuple[list[int], int | None]:
        """Numbers of lines from `first` on that hold `text`, or look like errors when it is empty.

        The second value is the line to go on from when `most_bytes` were read without an end.
        """
        needle = text.casefold()
        hits: list[int] = []
        read = 0
        async for row in self._walk(max(0, first)):
            read += len(row.text) + row.more
            plain = to_text(row.text)
            if (needle in plain.casefold()) if needle else ERRORS.search(plain):
                hits.append(row.number)
                if len(hits) >= limit:
                    return hits, row.number + 1
            if read > most_bytes:
                return hits, row.number + 1
        return hits, None

    async def _walk(self, first: int) -> AsyncIterator[Row]:
        """All lines from `first` on."""
        place = max(0, bisect_right(self._before, first - 1) - 1) if first else 0
        line = _Line(self._before[place])
        for index, part in enumerate(self._parts[place:], place):
            fetched = await self._source.fetch(part.info)
            for offset, piece, whole in _pieces(fetched.chunk):
                line.add(fetched.chunk, offset, piece)
                if whole:
                    if line.number >= first:
                        yield line.row()
                    line = _Line(line.number + 1)
            if fetched.missing:
                line.gap, line.lost = fetched.missing, part.info.end - fetched.chunk.end
                if line.number >= first:
                    yield line.row()
                line = _Line(max(line.number + 1, self._before[index + 1]))
        if (line.held or line.gap) and line.number >= first:
            yield line.row()


class _Line:
    """A line that is being put together from the pieces that chunks hold of it."""

    def __init__(self, number: int) -> None:
        self.number = number
        self.held = b""
        self.beyond = 0
        self.gap = ""
        self.lost = 0
        self._ms = 0

    def add(self, chunk: Chunk, offset: int, piece: bytes) -> None:
        if not self.held:
            self._ms = _time_of(chunk, offset)
        for gap in chunk.gaps:
            if offset <= gap.offset < offset + max(1, len(piece)):
                self.gap = gap.reason or "lost"
                self.lost += gap.lost
        room = max(0, _MOST_SHOWN - len(self.held))
        self.held += piece[:room]
        self.beyond += max(0, len(piece) - room)

    def row(self) -> Row:
        text = self.held.decode("utf-8", "replace").rstrip("\r")
        if "\r" in text:
            text = next((t for t in reversed(text.split("\r")) if t), "")
        return Row(self.number, self._ms, text, self.beyond, self.gap, self.lost)


def _pieces(chunk: Chunk) -> list[tuple[int, bytes, bool]]:
    """Offset, bytes and whether a line feed ended it, for each line or part of one."""
    found = []
    at = 0
    data = chunk.data
    while at < len(data):
        end = data.find(b"\n", at)
        stop = len(data) if end < 0 else end
        found.append((chunk.first_byte + at, data[at:stop], end >= 0))
        at = stop + 1
    return found


def _time_of(chunk: Chunk, offset: int) -> int:
    place = bisect_right(chunk.marks, offset, key=lambda m: m.offset) - 1
    return chunk.marks[place].unix_ms if place >= 0 else 0
