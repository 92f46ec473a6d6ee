"""Cuts a stream's bytes into lines for people, the same way however the stream was chunked.

A line ends at a line feed, a carriage return or both; a progress bar that redraws itself by
carriage returns is thus one line a redraw. A longer line is cut at 16 KiB. The text keeps whatever
the program wrote, terminal escapes included: whoever shows it must escape it.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from typing import NamedTuple

from verderer.objects.logs import Mark

MAX_LINE_BYTES = 16 * 1024


class LogLine(NamedTuple):  # a long log has millions, and these are quick to make
    """One line, or one piece of a line that was too long or broken by a gap."""

    offset: int
    """Of its first byte in the stream."""
    unix_ms: int
    """When that byte was read; 0 when not known."""
    text: str
    """Without its end; bytes that are not UTF-8 are replaced."""
    truncated: bool
    """Whether the line goes on in the next item."""
    next_offset: int
    """Where to go on reading after it."""


class LogGap(NamedTuple):
    """Bytes are missing just before the byte at `next_offset`."""

    offset: int
    lost: int
    """Bytes; 0 when not known."""
    reason: str
    next_offset: int
    """Equal to `offset` for bytes that never were in the stream; after it for bytes that were
    counted but cannot be read."""


LogItem = LogLine | LogGap


class LineCutter:
    """Takes consecutive bytes and gaps, gives lines and gaps; holds back an unfinished line."""

    def __init__(self, offset: int) -> None:
        self.offset = offset
        """Of the next byte that it expects."""
        self._held = b""
        self._held_ms = 0

    @property
    def settled(self) -> int:
        """Offset up to which everything has been given out."""
        return self.offset - len(self._held)

    def feed(self, data: bytes, clock: Clock) -> list[LogLine]:
        """Take the bytes at `offset`; give the lines that they finish."""
        began, start = self.offset, self.settled
        whole = self._held + data
        held_ms = self._held_ms
        self.offset += len(data)
        self._held = b""
        lines: list[LogLine] = []
        for line in whole.splitlines(keepends=True):
            unix_ms = held_ms if start < began else clock.at(start)
            after = start + len(line)
            if len(line) <= MAX_LINE_BYTES and line.endswith(b"\n"):
                text = line.decode("utf-8", "replace").rstrip("\r\n")
                lines.append(LogLine(start, unix_ms, text, False, after))
            else:
                self._cut(line, start, unix_ms, lines)
            start = after
        return lines

    def gap(self, gap: LogGap) -> list[LogItem]:
        """A gap at `offset`: what is held is given out, broken off, and then the gap."""
        items: list[LogItem] = [*self.finish(truncated=True), gap]
        self.offset = gap.next_offset
        return items

    def finish(self, *, truncated: bool = False) -> list[LogLine]:
        """The stream ends or breaks off here: what is held is a line."""
        held, start = self._held, self.settled
        self._held = b""
        if not held:
            return []
        goes_on = truncated and not held.endswith(b"\r")
        return [_line(held.rstrip(b"\r"), start, self._held_ms, goes_on, start + len(held))]

    def _cut(self, line: bytes, start: int, unix_ms: int, lines: list[LogLine]) -> None:
        content = line.rstrip(b"\r\n")
        at = 0
        while len(content) - at > MAX_LINE_BYTES:
            size = _whole_characters(content, at)
            lines.append(
                _line(content[at : at + size], start + at, unix_ms, True, start + at + size)
            )
            at += size
        # A carriage return at the very end may be the first half of a pair.
        if start + len(line) == self.offset and not line.endswith(b"\n"):
            self._held, self._held_ms = line[at:], unix_ms
        else:
            lines.append(_line(content[at:], start + at, unix_ms, False, start + len(line)))


class Clock:
    """Finds the time of a byte among a chunk's marks."""

    def __init__(self, marks: Sequence[Mark]) -> None:
        self._marks = marks
        self._offsets = [mark.offset for mark in marks]

    def at(self, offset: int) -> int:
        """Unix milliseconds; 0 when the chunk has no mark."""
        place = bisect_right(self._offsets, offset)
        if place == 0:
            return self._marks[0].unix_ms if self._marks else 0
        return self._marks[place - 1].unix_ms


def _line(content: bytes, offset: int, unix_ms: int, truncated: bool, next_offset: int) -> LogLine:
    return LogLine(offset, unix_ms, content.decode("utf-8", "replace"), truncated, next_offset)


def _whole_characters(content: bytes, at: int) -> int:
    """The most bytes, up to the limit, that do not end inside a UTF-8 character."""
    end = at + MAX_LINE_BYTES
    for back in range(4):
        if content[end - back] & 0xC0 != 0x80:
            return MAX_LINE_BYTES - back
    return MAX_LINE_BYTES
