"""Reads a replica's log: a range of lines, the last lines, what is new, what holds a text.

Everything takes the chunk infos that the database gave and a `ChunkSource`; nothing here waits or
polls. Gaps come as items of their own among the lines, never silently.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass

from verderer.core.diagnosis import TAIL_LINES
from verderer.core.errors import Fault
from verderer.objects.log_chunks import ChunkInfo, ChunkSource
from verderer.objects.log_lines import MAX_LINE_BYTES, LineCutter, LogGap, LogItem, LogLine
from verderer.objects.log_passing import passed


@dataclass(frozen=True, slots=True)
class LogPage:
    """Some items, and where the next page starts."""

    items: tuple[LogItem, ...]
    next_offset: int
    ended: bool
    """Whether there was nothing after the items when they were read."""


async def read_lines(
    source: ChunkSource, infos: Sequence[ChunkInfo], *, start: int = 0, end: int | None = None
) -> AsyncIterator[LogItem]:
    """Lines and gaps from byte `start` up to byte `end` (None: all there is), in order.

    A line that begins before `end` and goes beyond is cut off there; one that is not finished at
    the end of the log is given as it stands. Gaps at `start` are given, gaps at `end` only when it
    is None, so that reading on from there gives each once.

    Raises:
        Fault: the store does not answer.
    """
    cutter = LineCutter(start)
    goes_on = False
    for info in sorted(infos, key=lambda one: one.seq):
        goes_on = end is not None and info.end > end
        if info.end < start:
            continue
        if end is not None and info.first_byte >= end:
            break
        for batch in passed(cutter, await source.fetch(info), end=end):
            for item in batch:
                yield item
            await asyncio.sleep(0)  # a long log must not keep other requests waiting
    for item in cutter.finish(truncated=goes_on):
        yield item


async def read_page(
    source: ChunkSource, infos: Sequence[ChunkInfo], *, start: int = 0, limit: int
) -> LogPage:
    """At most `limit` lines from byte `start` on, with the gaps before each of them.

    Pages of a finished log, read one after the other, give every item once.

    Raises:
        Fault: the store does not answer.
    """
    items: list[LogItem] = []
    lines = 0
    at = start
    async for item in read_lines(source, infos, start=start):
        if lines == limit:
            return LogPage(tuple(items), at, ended=False)
        items.append(item)
        at = item.next_offset
        lines += isinstance(item, LogLine)
    return LogPage(tuple(items), at, ended=True)


async def tail(source: ChunkSource, infos: Sequence[ChunkInfo], lines: int) -> tuple[LogItem, ...]:
    """The last `lines` lines and the gaps among them, reading only the end of the log.

    Raises:
        Fault: the store does not answer.
    """
    if lines <= 0:
        return ()
    wanted = await _last_chunks(source, infos, lines)
    kept: deque[LogItem] = deque()
    count = 0
    async for item in read_lines(source, wanted, start=wanted[0].first_byte if wanted else 0):
        kept.append(item)
        count += isinstance(item, LogLine)
        while count > lines:
            count -= isinstance(kept.popleft(), LogLine)
    return tuple(kept)


async def last_lines(
    source: ChunkSource, infos: Sequence[ChunkInfo], lines: int = TAIL_LINES
) -> bytes:
    """The last lines as bytes, for whoever looks for signs in them; gaps are left out.

    What the store does not give is empty.
    """
    try:
        found = await tail(source, infos, lines)
    except Fault:
        return b""
    text = "\n".join(item.text for item in found if isinstance(item, LogLine))
    return text.encode("utf-8", "replace")


async def search(
    source: ChunkSource,
    infos: Sequence[ChunkInfo],
    text: str,
    *,
    limit: int,
    start: int = 0,
) -> AsyncIterator[LogLine]:
    """At most `limit` lines from byte `start` on that hold `text`, in whatever case.

    A text that lies across the cut of a line of more than 16 KiB is not found.

    Raises:
        Fault: the store does not answer.
    """
    if limit <= 0:
        return
    needle = text.casefold()
    found = 0
    async for item in read_lines(source, infos, start=start):
        if isinstance(item, LogLine) and needle in item.text.casefold():
            yield item
            found += 1
            if found >= limit:
                return


class Follower:
    """Gives what is new of a growing log each time it is told of the chunks.

    It remembers how far it came; a line is given once it is finished.
    """

    def __init__(self, source: ChunkSource, *, start: int = 0) -> None:
        self._source = source
        self._cutter = LineCutter(start)
        self._seq = -1
        self._gaps_given = 0

    @property
    def offset(self) -> int:
        """Everything before it has been given; a new follower may start here.

        (A gap that lies exactly here may then be given again.)
        """
        return self._cutter.settled

    async def advance(
        self, infos: Sequence[ChunkInfo], *, ended: bool = False
    ) -> AsyncIterator[Sequence[LogItem]]:
        """What has come since the last call, in batches; old chunks in `infos` cost nothing.

        With `ended` there will be no more: the unfinished line and a gap at the very end are given
        too, and a missing chunk is a gap instead of something to wait for. The caller may stop
        after any batch, or call again after an error: nothing is lost or given twice.

        Raises:
            Fault: the store does not answer.
        """
        for info in sorted(infos, key=lambda one: one.seq):
            if info.seq < self._seq or info.end < self._cutter.offset:
                continue
            if info.first_byte > self._cutter.offset and not ended:
                return
            fetched = await self._source.fetch(info)
            if info.seq != self._seq:
                self._seq = info.seq
                self._gaps_given = sum(
                    gap.offset < self._cutter.offset for gap in fetched.chunk.gaps
                )
            # At the end of a chunk that is still written a gap may grow.
            firm = [
                gap for gap in fetched.chunk.gaps if gap.offset < info.end or info.sealed or ended
            ]
            new = tuple(firm[self._gaps_given :])
            for batch in passed(self._cutter, fetched, gaps=new):
                self._gaps_given += _stream_gaps(batch)
                yield batch
        if ended and (rest := self._cutter.finish()):
            yield rest


async def _last_chunks(
    source: ChunkSource, infos: Sequence[ChunkInfo], lines: int
) -> list[ChunkInfo]:
    """The fewest chunks at the end that surely hold `lines` whole lines."""
    wanted: deque[ChunkInfo] = deque()
    feeds = size = 0
    for info in sorted(infos, key=lambda one: one.seq, reverse=True):
        wanted.appendleft(info)
        data = (await source.fetch(info)).chunk.data
        feeds += data.count(b"\n")
        size += len(data)
        # The first line may have begun earlier, so one more is needed. No line is longer than the
        # limit and its end, so that many bytes are enough lines whatever is in them.
        if feeds > lines or size > (lines + 1) * (MAX_LINE_BYTES + 2):
            break
    return list(wanted)


def _stream_gaps(items: Sequence[LogItem]) -> int:
    """How many of the items are gaps that a chunk told of, not bytes that could not be read."""
    return sum(isinstance(item, LogGap) and item.next_offset == item.offset for item in items)
