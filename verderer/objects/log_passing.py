"""Passes what was fetched of a chunk through a line cutter, in batches that leave it consistent.

The caller may stop after any batch: the cutter then stands exactly after what was given.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from verderer.objects.log_chunks import Fetched
from verderer.objects.log_lines import Clock, LineCutter, LogGap, LogItem
from verderer.objects.logs import Gap

HOLE = "chunks are missing"
_SLICE = 64 * 1024
"""Bytes cut at once: a chunk of nothing but line feeds must not become a million lines at once."""


def passed(
    cutter: LineCutter,
    fetched: Fetched,
    *,
    gaps: Sequence[Gap] | None = None,
    end: int | None = None,
) -> Iterator[Sequence[LogItem]]:
    """What the chunk holds from `cutter.offset` up to `end` (None: its own end).

    `gaps` are the chunk's gaps that were not given yet (None: all from the offset on). A gap at
    `end` is left for whoever reads on from there.
    """
    start = cutter.offset
    chunk, info = fetched.chunk, fetched.info
    if info.first_byte > start:
        yield cutter.gap(_counted(start, info.first_byte, HOLE))
    stop = info.end if end is None else min(info.end, end)
    clock = Clock(chunk.marks)
    for gap in chunk.gaps if gaps is None else gaps:
        if gap.offset >= start and (end is None or gap.offset < end):
            yield from _fed(cutter, fetched, clock, gap.offset)
            yield cutter.gap(LogGap(gap.offset, gap.lost, gap.reason, gap.offset))
    yield from _fed(cutter, fetched, clock, min(stop, chunk.end))
    if fetched.missing and cutter.offset < stop:
        yield cutter.gap(_counted(cutter.offset, stop, fetched.missing))


def _fed(
    cutter: LineCutter, fetched: Fetched, clock: Clock, upto: int
) -> Iterator[Sequence[LogItem]]:
    first = fetched.chunk.first_byte
    while cutter.offset < upto:
        begin = cutter.offset - first
        piece = fetched.chunk.data[begin : min(begin + _SLICE, upto - first)]
        if lines := cutter.feed(piece, clock):
            yield lines


def _counted(offset: int, next_offset: int, reason: str) -> LogGap:
    return LogGap(offset, next_offset - offset, reason, next_offset)
