"""Reads back what a monitor's `LogWriter` wrote, while it is still being written."""

from __future__ import annotations

import bisect
import os
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from verderer.drivers.contract import LogPiece
from verderer.drivers.local.monitor.spool import MARK, REASONS

MAX_PIECE = 256 * 1024
"""Bytes in one piece at most."""
RELEASED = "already released"
UNKNOWN = "not kept"
_READ = os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC


@dataclass(slots=True)
class _Segment:
    """One open segment and the marks read so far."""

    start: int
    log: int
    index: int
    offsets: list[int] = field(default_factory=list)
    times: list[int] = field(default_factory=list)

    def close(self) -> None:
        os.close(self.log)
        os.close(self.index)

    def read_marks(self) -> None:
        while data := os.pread(self.index, MARK.size * 4096, len(self.offsets) * MARK.size):
            for offset, unix_ms in MARK.iter_unpack(data[: len(data) // MARK.size * MARK.size]):
                self.offsets.append(offset)
                self.times.append(unix_ms)
            if len(data) < MARK.size:
                return

    def pieces(self, offset: int, data: bytes) -> Iterator[LogPiece]:
        """Cut `data` at the marks, so that each byte has the time at which it came."""
        end = offset + len(data)
        at = max(0, bisect.bisect_right(self.offsets, offset) - 1)
        begin = offset
        while begin < end:
            until = self.offsets[at + 1] if at + 1 < len(self.offsets) else end
            until = min(end, until)
            if until > begin:
                when = self.times[at] if at < len(self.times) else 0
                yield LogPiece(
                    offset=begin, unix_ms=when, data=data[begin - offset : until - offset]
                )
                begin = until
            at += 1


class LogReader:
    """A position in the output of one replica; `read` moves it on."""

    def __init__(self, directory: Path, after: int) -> None:
        self.offset = after
        self._directory = directory
        self._segment: _Segment | None = None
        self._clock_ms = 0

    def read(self) -> list[LogPiece]:
        """The next pieces, about `MAX_PIECE` bytes or one hole; empty when there is no more now.

        Raises:
            OSError: the disk does not give back what it has.
        """
        while True:
            # The names first: a segment with a successor gets no more bytes, so that an empty
            # read after this listing is its end.
            names = _segments(self._directory)
            if self._segment is not None and (pieces := self._read_segment(self._segment)):
                return pieces
            step = self._advance(names)
            if step is None:
                return []
            if step:
                return step

    def rest(self, total: int, hole: str) -> list[LogPiece]:
        """The hole at the very end, when the program wrote `total` bytes in all."""
        if total <= self.offset:
            return []
        return [self._hole_until(total, REASONS.get(hole, UNKNOWN))]

    def close(self) -> None:
        """Let go of the files."""
        if self._segment is not None:
            self._segment.close()
        self._segment = None

    def _read_segment(self, segment: _Segment) -> list[LogPiece]:
        data = os.pread(segment.log, MAX_PIECE, self.offset - segment.start)
        if not data:
            return []
        segment.read_marks()
        pieces = list(segment.pieces(self.offset, data))
        self.offset += len(data)
        self._clock_ms = pieces[-1].unix_ms
        return pieces

    def _advance(self, names: dict[int, str]) -> list[LogPiece] | None:
        """Go to the segment that holds the position, or over the hole before the next one.

        None when nothing follows, an empty list when a segment was opened.
        """
        now_at = -1 if self._segment is None else self._segment.start
        starts = sorted(start for start in names if start > now_at)
        if not starts:
            return None
        index = max(0, bisect.bisect_right(starts, self.offset) - 1)
        start = starts[index]
        if start > self.offset:
            return [self._hole_until(start, _why(names[start]))]
        self.close()
        self._open(start, names[start])
        return []

    def _open(self, start: int, name: str) -> None:
        stem = f"{start:020d}"
        try:
            log = os.open(self._directory / name, _READ)
        except FileNotFoundError:  # released since it was listed: the next listing shows the hole
            return
        try:
            index = os.open(self._directory / f"{stem}.idx", _READ)
        except FileNotFoundError:  # being released: the bytes are ours still, their times are not
            index = os.open(os.devnull, _READ)
        self._segment = _Segment(start, log, index)

    def _hole_until(self, end: int, reason: str) -> LogPiece:
        piece = LogPiece(
            offset=self.offset, unix_ms=self._clock_ms, lost=end - self.offset, reason=reason
        )
        self.offset = end
        return piece


def release(directory: Path, upto: int, *, complete: bool) -> None:
    """Delete the segments whose every byte lies before `upto`.

    The newest one stays while more may come (`complete` is False): it is being written.
    """
    names = _segments(directory)
    starts = sorted(names)
    for start in starts if complete else starts[:-1]:
        path = directory / names[start]
        if start + path.stat().st_size > upto:
            return
        path.unlink(missing_ok=True)
        (directory / f"{start:020d}.idx").unlink(missing_ok=True)


def _segments(directory: Path) -> dict[int, str]:
    """Names of the segments by the offset of their first byte."""
    try:
        names = [entry.name for entry in directory.iterdir()]
    except FileNotFoundError:
        return {}
    return {int(name.split(".")[0]): name for name in names if name.endswith(".log")}


def _why(name: str) -> str:
    parts = name.split(".")
    return REASONS.get(parts[1], UNKNOWN) if len(parts) == 3 else RELEASED
