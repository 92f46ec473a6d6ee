"""The viewer's lines: the same whatever the chunks are, and from any number on."""

from __future__ import annotations

import asyncio
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from verderer.objects.config import ObjectsConfig
from verderer.objects.log_chunks import ChunkInfo, ChunkSource
from verderer.objects.logs import Chunk, Gap, encode_chunk
from verderer.objects.store import open_store
from verderer.web.log_window import LogWindow, Part, Row


async def make(data: bytes, cuts: list[int], *, missing: int = -1) -> LogWindow:
    """A log of `data`, cut into chunks at the given places."""
    store = open_store(ObjectsConfig(url="memory://"))
    places = [0, *sorted({c for c in cuts if 0 < c < len(data)}), len(data)]
    parts = []
    for seq, (start, end) in enumerate(pairwise(places)):
        key = f"logs/1/a/0/1/0/{seq:08d}"
        chunk = Chunk(start, data[start:end])
        if seq != missing:
            await store.put(key, encode_chunk(chunk))
        info = ChunkInfo(seq, start, end - start, key, True)
        parts.append(Part(info, chunk.lines))
    return LogWindow(ChunkSource(store), parts)


def text_of(rows: list[Row]) -> list[str]:
    return [row.text for row in rows]


_LINES = st.lists(st.text("abc é", max_size=8), max_size=40)


@given(_LINES, st.lists(st.integers(0, 300)), st.integers(0, 45), st.integers(1, 45))
@settings(max_examples=80, deadline=None)
def test_rows_are_the_lines_of_the_text(
    lines: list[str], cuts: list[int], first: int, count: int
) -> None:
    data = "".join(f"{line}\n" for line in lines).encode()
    rows = asyncio.run(_rows(data, cuts, first, count))
    assert text_of(rows) == lines[first : first + count]
    assert [row.number for row in rows] == list(range(first, min(first + count, len(lines))))


async def _rows(data: bytes, cuts: list[int], first: int, count: int) -> list[Row]:
    return await (await make(data, cuts)).rows(first, count)


async def test_a_line_that_is_not_finished_is_there_too() -> None:
    window = await make(b"one\ntwo", [2])
    assert text_of(await window.rows(0, 10)) == ["one", "two"]
    assert window.feeds == 1


async def test_progress_bars_show_their_last_state() -> None:
    window = await make(b" 10 %\r 50 %\r100 %\ndone\r\n", [7])
    assert text_of(await window.rows(0, 10)) == ["100 %", "done"]


async def test_a_very_long_line_is_cut_and_says_so() -> None:
    window = await make(b"x" * 100_000 + b"\nnext\n", [50_000])
    first, second = await window.rows(0, 10)
    assert len(first.text) + first.more == 100_000
    assert second.text == "next"


async def test_binary_junk_is_harmless() -> None:
    window = await make(bytes(range(256)) * 20, [1000])
    assert len(await window.rows(0, 100)) == 21


async def test_a_chunk_that_is_gone_is_a_gap_and_the_rest_keeps_its_numbers() -> None:
    data = b"".join(b"line %d\n" % n for n in range(30))
    window = await make(data, [70, 140], missing=1)
    rows = await window.rows(0, 100)
    gaps = [row for row in rows if row.gap]
    assert len(gaps) == 1
    assert gaps[0].lost == 70
    assert rows[-1] == Row(29, 0, "line 29")


async def test_what_was_lost_is_told_on_its_line() -> None:
    store = open_store(ObjectsConfig(url="memory://"))
    chunk = Chunk(0, b"a\nb\nc\n", (), (Gap(2, 500, "the disk was full"),))
    await store.put("logs/x", encode_chunk(chunk))
    part = Part(ChunkInfo(0, 0, 6, "logs/x", True), 3)
    rows = await LogWindow(ChunkSource(store), [part]).rows(0, 10)
    assert [(row.text, row.gap, row.lost) for row in rows] == [
        ("a", "", 0),
        ("b", "the disk was full", 500),
        ("c", "", 0),
    ]


@pytest.mark.parametrize(
    ("text", "first", "limit", "hits"),
    [
        pytest.param("NEEDLE", 0, 10, [3, 7], id="in whatever case"),
        pytest.param("needle", 4, 10, [7], id="from a line on"),
        pytest.param("needle", 0, 1, [3], id="the first ones"),
        pytest.param("", 0, 10, [9], id="without a text: what looks like an error"),
        pytest.param("absent", 0, 10, [], id="nowhere"),
    ],
)
async def test_find(text: str, first: int, limit: int, hits: list[int]) -> None:
    lines = [f"line {n}" for n in range(12)]
    lines[3], lines[7] = "a needle", "\x1b[31mnee\x1b[0mdle"
    lines[9] = "ValueError: no; Traceback"
    window = await make("\n".join(lines).encode() + b"\n", [17, 40])
    found, _ = await window.find(text, first=first, limit=limit)
    assert found == hits
