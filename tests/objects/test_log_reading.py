"""Reading a log: the same lines however it was chunked, and never a hidden gap."""

from __future__ import annotations

import random
from collections.abc import Sequence
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from verderer.core.errors import Fault
from verderer.objects.config import ObjectsConfig
from verderer.objects.log_chunks import DAMAGED, MISSING, SHORT, ChunkInfo, ChunkSource
from verderer.objects.log_lines import MAX_LINE_BYTES, LogGap, LogItem, LogLine
from verderer.objects.log_passing import HOLE
from verderer.objects.log_reading import Follower, read_lines, read_page, search, tail
from verderer.objects.logs import Chunk, Gap, Mark, encode_chunk
from verderer.objects.store import ObjectStore, open_store

BYTES = st.lists(
    st.one_of(
        st.sampled_from([b"\n", b"\r", b"\r\n", b"", b"word ", "日本".encode(), b"\xff\xfe"]),
        st.binary(max_size=8),
        st.integers(1, 3).map(lambda n: b"x" * (n * MAX_LINE_BYTES // 2)),
    ),
    max_size=12,
).map(b"".join)


class Log:
    """A log in a memory store, and what the database would say about it."""

    def __init__(self) -> None:
        self.store: ObjectStore = open_store(ObjectsConfig(url="memory://"))
        self.source = ChunkSource(self.store)
        self.infos: list[ChunkInfo] = []

    @property
    def end(self) -> int:
        return self.infos[-1].end if self.infos else 0

    async def add(
        self,
        data: bytes,
        *,
        gaps: Sequence[Gap] = (),
        marks: Sequence[Mark] = (),
        sealed: bool = True,
        again: bool = False,
    ) -> ChunkInfo:
        """Write the next chunk, or the latest one again."""
        if again:
            self.infos.pop()
        seq, first = len(self.infos), self.end
        chunk = Chunk(first, data, tuple(marks), tuple(gaps))
        info = ChunkInfo(seq, first, len(data), f"logs/{seq}", sealed)
        await self.store.put(info.key, encode_chunk(chunk))
        self.infos.append(info)
        return info

    async def read(self, start: int = 0, end: int | None = None) -> list[LogItem]:
        return [one async for one in read_lines(self.source, self.infos, start=start, end=end)]

    async def tail(self, lines: int) -> list[LogItem]:
        return list(await tail(self.source, self.infos, lines))


async def cut_at(data: bytes, cuts: Sequence[int]) -> Log:
    log = Log()
    edges = [0, *sorted({min(cut, len(data)) for cut in cuts} - {0, len(data)}), len(data)]
    for begin, end in pairwise(edges):
        await log.add(data[begin:end])
    return log


def texts(items: Sequence[LogItem]) -> list[str]:
    return [one.text if isinstance(one, LogLine) else f"-{one.lost}-" for one in items]


async def followed(follower: Follower, log: Log, *, ended: bool = False) -> list[LogItem]:
    batches = follower.advance(log.infos, ended=ended)
    return [item async for batch in batches for item in batch]


async def test_lines_have_offsets_and_times() -> None:
    log = Log()
    await log.add(b"one\ntw", marks=[Mark(0, 1000), Mark(4, 2000)])
    await log.add(b"o\nthree", marks=[Mark(6, 3000)])
    assert await log.read() == [
        LogLine(0, 1000, "one", False, 4),
        LogLine(4, 2000, "two", False, 8),
        LogLine(8, 3000, "three", False, 13),
    ]


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        pytest.param(b"", [], id="nothing"),
        pytest.param(b"\n\n", ["", ""], id="empty lines"),
        pytest.param(b"a\r\nb\rc\n", ["a", "b", "c"], id="every kind of end"),
        pytest.param(b"10%\r20%\r30%", ["10%", "20%", "30%"], id="a progress bar"),
        pytest.param(b"a\r", ["a"], id="half a pair at the end"),
        pytest.param(b"\xff\0\x1b[31m\n", ["\ufffd\0\x1b[31m"], id="binary junk"),
        pytest.param(
            b"x" * (MAX_LINE_BYTES + 1) + b"\n", ["x" * MAX_LINE_BYTES, "x"], id="a long line"
        ),
        pytest.param(b"x" * MAX_LINE_BYTES + b"\n", ["x" * MAX_LINE_BYTES], id="the longest line"),
    ],
)
async def test_lines(data: bytes, expected: list[str]) -> None:
    thirds = list(range(0, len(data), max(1, len(data) // 3)))
    for cuts in (thirds[:0], thirds):
        items = await (await cut_at(data, cuts)).read()
        assert texts(items) == expected


async def test_a_long_line_is_cut_between_characters_and_says_that_it_goes_on() -> None:
    data = "é".encode() * MAX_LINE_BYTES
    items = await (await cut_at(b"a" + data + b"\nnext", [5000])).read()
    lines = [one for one in items if isinstance(one, LogLine)]
    assert [one.truncated for one in lines] == [True, True, False, False]
    assert "".join(one.text for one in lines[:3]) == "a" + data.decode()
    assert "\ufffd" not in "".join(texts(items))


@settings(deadline=None)
@given(data=BYTES, cuts=st.lists(st.integers(0, 60_000), max_size=6))
async def test_chunking_never_shows(data: bytes, cuts: list[int]) -> None:
    whole = await (await cut_at(data, [])).read()
    log = await cut_at(data, cuts)
    items = await log.read()
    assert items == whole
    at = 0
    for item in items:
        assert item.offset == at, "lines lie one after the other"
        at = item.next_offset
    assert at == len(data)


@settings(deadline=None)
@given(data=BYTES, cuts=st.lists(st.integers(0, 60_000), max_size=4), limit=st.integers(1, 5))
async def test_pages_together_are_the_log(data: bytes, cuts: list[int], limit: int) -> None:
    log = await cut_at(data, cuts)
    found: list[LogItem] = []
    at = 0
    while True:
        page = await read_page(log.source, log.infos, start=at, limit=limit)
        found += page.items
        at = page.next_offset
        if page.ended:
            break
    assert found == await log.read()


@settings(deadline=None)
@given(data=BYTES, cuts=st.lists(st.integers(0, 60_000), max_size=6), lines=st.integers(1, 30))
async def test_the_tail_is_the_end_of_the_log(data: bytes, cuts: list[int], lines: int) -> None:
    log = await cut_at(data, cuts)
    # Where reading begins inside a line of more than 16 KiB its cuts lie elsewhere.
    if max((len(line) for line in data.splitlines()), default=0) <= MAX_LINE_BYTES:
        assert await log.tail(lines) == (await log.read())[-lines:]
    else:
        assert len(await log.tail(lines)) == min(lines, len(await log.read()))


@settings(deadline=None)
@given(data=BYTES, seed=st.integers(0, 1000))
async def test_a_follower_gives_each_line_once(data: bytes, seed: int) -> None:
    chance = random.Random(seed)
    log = Log()
    follower = Follower(log.source)
    found: list[LogItem] = []
    at = 0
    begun = b""
    while at < len(data):
        piece = data[at : at + chance.randint(1, 20_000)]
        at += len(piece)
        sealed = chance.random() < 0.4
        await log.add(begun + piece, sealed=sealed, again=bool(begun))
        begun = b"" if sealed else begun + piece
        if chance.random() < 0.7:
            found += await followed(follower, log)
            assert all(item.next_offset <= follower.offset for item in found)
    found += await followed(follower, log, ended=True)
    assert found == await log.read()
    assert await followed(follower, log, ended=True) == []


async def test_gaps_stand_among_the_lines_and_break_them() -> None:
    log = Log()
    await log.add(
        b"one\ntwo", gaps=[Gap(0, 5, "a"), Gap(4, 6, "b"), Gap(6, 7, "c"), Gap(7, 8, "d")]
    )
    await log.add(b"three\n", gaps=[Gap(7, 9, "e")])
    items = await log.read()
    assert texts(items) == ["-5-", "one", "-6-", "tw", "-7-", "o", "-8-", "-9-", "three"]
    assert [one.truncated for one in items if isinstance(one, LogLine)] == [
        False,
        True,
        True,
        False,
    ]


async def test_every_gap_is_in_one_of_two_ranges() -> None:
    log = Log()
    await log.add(b"ab\ncd\n", gaps=[Gap(0, 1, ""), Gap(3, 2, ""), Gap(4, 3, ""), Gap(6, 4, "")])
    await log.add(b"", gaps=[Gap(6, 5, "")])
    whole = [item for item in await log.read() if isinstance(item, LogGap)]
    assert [gap.lost for gap in whole] == [1, 2, 3, 4, 5]
    for middle in range(7):
        split = [*await log.read(end=middle), *await log.read(start=middle)]
        assert [item for item in split if isinstance(item, LogGap)] == whole


async def test_a_range_is_cut_at_its_ends() -> None:
    log = await cut_at(b"one\ntwo\nthree\n", [5])
    assert await log.read(4, 8) == [LogLine(4, 0, "two", False, 8)]
    assert await log.read(5, 10) == [
        LogLine(5, 0, "wo", False, 8),
        LogLine(8, 0, "th", True, 10),
    ]
    assert await log.read(99) == []
    assert await log.read(3, 3) == []


async def test_a_follower_gives_a_gap_once_and_when_it_can_no_longer_grow() -> None:
    log = Log()
    follower = Follower(log.source)
    await log.add(b"a\n", sealed=False, gaps=[Gap(2, 5, "x")])
    assert texts(await followed(follower, log)) == ["a"]
    await log.add(b"a\n", sealed=False, gaps=[Gap(2, 9, "x")], again=True)
    assert await followed(follower, log) == []
    await log.add(b"a\nb\n", sealed=False, gaps=[Gap(2, 9, "x"), Gap(4, 1, "x")], again=True)
    assert texts(await followed(follower, log)) == ["-9-", "b"]
    await log.add(b"a\nb\n", sealed=True, gaps=[Gap(2, 9, "x"), Gap(4, 1, "x")], again=True)
    assert texts(await followed(follower, log)) == ["-1-"]
    await log.add(b"c\n", gaps=[Gap(4, 2, "y")])
    assert texts(await followed(follower, log)) == ["-2-", "c"]
    assert await followed(follower, log, ended=True) == []


async def test_a_loss_noted_after_the_last_byte_is_not_hidden_by_the_cache() -> None:
    log = Log()
    follower = Follower(log.source)
    await log.add(b"a\n", sealed=False)
    assert texts(await followed(follower, log)) == ["a"]
    await log.add(b"a\n", sealed=True, gaps=[Gap(2, 7, "agent restarted")], again=True)
    assert texts(await followed(follower, log)) == ["-7-"]


async def test_a_follower_can_start_in_the_middle() -> None:
    log = Log()
    await log.add(b"a\nb\nc\n", gaps=[Gap(2, 1, ""), Gap(4, 2, ""), Gap(6, 3, "")], sealed=True)
    follower = Follower(log.source, start=4)
    assert texts(await followed(follower, log)) == ["-2-", "c", "-3-"]
    assert await followed(follower, log) == []


async def test_a_follower_that_stops_after_a_batch_loses_nothing() -> None:
    log = Log()
    await log.add(b"line\n" * 100_000, gaps=[Gap(250_000, 1, "")])
    follower = Follower(log.source)
    found: list[LogItem] = []
    while True:
        batches = follower.advance(log.infos)
        batch = await anext(batches, None)
        await batches.aclose()  # type: ignore[attr-defined]
        if batch is None:
            break
        assert len(batch) < 20_000
        found += batch
    assert found == await log.read()


async def test_a_follower_waits_for_a_missing_chunk_until_the_end() -> None:
    log = Log()
    for data in (b"a\n", b"b\n", b"c\n"):
        await log.add(data)
    hole = log.infos.pop(1)
    follower = Follower(log.source)
    assert texts(await followed(follower, log)) == ["a"]
    log.infos.insert(1, hole)
    assert texts(await followed(follower, log)) == ["b", "c"]
    del log.infos[1]
    late = Follower(log.source)
    items = await followed(late, log, ended=True)
    assert items[1] == LogGap(2, 2, HOLE, 4)
    assert texts(items) == ["a", "-2-", "c"]


@pytest.mark.parametrize(
    ("stored", "reason", "expected"),
    [
        pytest.param(None, MISSING, ["a", "-6-", "z"], id="the object is gone"),
        pytest.param(b"junk", DAMAGED, ["a", "-6-", "z"], id="the object is junk"),
        pytest.param(
            encode_chunk(Chunk(99, b"x")), DAMAGED, ["a", "-6-", "z"], id="it is another chunk"
        ),
        pytest.param(
            encode_chunk(Chunk(2, b"bc")), SHORT, ["a", "bc", "-4-", "z"], id="it is too short"
        ),
    ],
)
async def test_what_cannot_be_read_is_a_gap(
    stored: bytes | None, reason: str, expected: list[str]
) -> None:
    log = Log()
    await log.add(b"a\n")
    lost = await log.add(b"bc\nde\n")
    await log.add(b"z\n")
    await log.store.delete(lost.key)
    if stored is not None:
        await log.store.put(lost.key, stored)
    for items in (await log.read(), await followed(Follower(log.source), log, ended=True)):
        assert texts(items) == expected
        (gap,) = (one for one in items if isinstance(one, LogGap))
        assert (gap.reason, gap.next_offset) == (reason, lost.end)
    page = await read_page(log.source, log.infos, start=4, limit=10)
    assert texts(page.items)[-1] == "z"


async def test_a_chunk_that_grew_since_is_cut_to_what_the_database_said() -> None:
    log = Log()
    info = await log.add(b"one\ntwo\n", sealed=False)
    grown = Chunk(0, b"one\ntwo\nthree\n", (Mark(0, 5), Mark(8, 6)), (Gap(8, 3, "x"),))
    await log.store.put(info.key, encode_chunk(grown))
    assert texts(await log.read()) == ["one", "two"]


async def test_search_finds_in_any_case_up_to_the_limit() -> None:
    log = await cut_at("Loss=1\nnothing\nLOSS=2\nGRÖSSE\nloss=3\n".encode(), [3, 20])

    async def found(text: str, limit: int = 10, start: int = 0) -> list[str]:
        lines = search(log.source, log.infos, text, limit=limit, start=start)
        return [line.text async for line in lines]

    assert await found("loss") == ["Loss=1", "LOSS=2", "loss=3"]
    assert await found("loss", limit=2) == ["Loss=1", "LOSS=2"]
    assert await found("loss", start=7) == ["LOSS=2", "loss=3"]
    assert await found("größe") == ["GRÖSSE"]
    assert await found(".*") == []
    assert await found("loss", limit=0) == []


async def test_a_hundred_megabytes_on_one_line_are_harmless() -> None:
    log = Log()
    for _ in range(100):
        await log.add(b"x" * (1024 * 1024))
    assert len(await log.tail(10)) == 10
    fetched = sum(len(chunk.data) for chunk in log.source._kept.values())
    assert fetched <= 2 * 1024 * 1024, "the tail reads only the end"
    count = size = 0
    async for item in read_lines(log.source, log.infos):
        assert isinstance(item, LogLine)
        count += 1
        size += len(item.text)
    assert size == 100 * 1024 * 1024
    assert count == size // MAX_LINE_BYTES


async def test_the_cache_is_bounded_and_saves_reads() -> None:
    log = Log()
    for n in range(6):
        await log.add(b"%d" % n * 1000)
    source = ChunkSource(log.store, cache_bytes=3000)
    for info in log.infos:
        await source.fetch(info)
    assert sum(len(chunk.data) for chunk in source._kept.values()) == 3000
    for info in log.infos:
        await log.store.delete(info.key)
    assert (await source.fetch(log.infos[5])).missing == ""
    assert (await source.fetch(log.infos[0])).missing == MISSING


async def test_a_store_that_fails_is_an_error_not_a_gap(monkeypatch: pytest.MonkeyPatch) -> None:
    log = await cut_at(b"a\nb\n", [2])
    follower = Follower(log.source)
    working = log.store.get

    async def fails_on_the_second(key: str) -> bytes:
        if key.endswith("1"):
            raise Fault("not now")
        return await working(key)

    monkeypatch.setattr(log.store, "get", fails_on_the_second)
    found: list[LogItem] = []
    batches = follower.advance(log.infos)
    found += await anext(batches)
    with pytest.raises(Fault):
        await anext(batches)
    monkeypatch.setattr(log.store, "get", working)
    found += await followed(follower, log)
    assert texts(found) == ["a", "b"]
