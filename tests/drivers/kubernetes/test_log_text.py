"""Taking a log apart, and up again."""

from __future__ import annotations

import itertools
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from verderer.drivers.contract import LogPiece
from verderer.drivers.kubernetes.logs.lines import MAX_HELD, LineReader
from verderer.drivers.kubernetes.logs.marks import Mark, Marks, after_line
from verderer.drivers.kubernetes.logs.position import ROTATED, Position

SECOND = 1_796_119_200


def stamped(lines: list[tuple[int, bytes]]) -> bytes:
    """As the API writes lines: (nanoseconds since SECOND, text without its end)."""
    return b"".join(_stamp(ns) + b" " + text + b"\n" for ns, text in lines)


def _stamp(ns: int) -> bytes:
    seconds, rest = divmod(ns, 1_000_000_000)
    minutes, seconds = divmod(seconds, 60)
    return f"2026-12-01T10:{minutes:02d}:{seconds:02d}.{rest:09d}Z".encode()


def taken(pieces: list[LogPiece]) -> bytes:
    return b"".join(piece.data for piece in pieces)


_LINES = st.lists(
    st.tuples(
        st.integers(0, 3).map(lambda n: n * 500_000_000),
        st.binary(max_size=30).map(lambda b: b.replace(b"\n", b"")),
    ),
    max_size=12,
).map(sorted)


@given(lines=_LINES, cuts=st.lists(st.integers(0, 500), max_size=6))
def test_bytes_may_be_cut_anywhere(lines: list[tuple[int, bytes]], cuts: list[int]) -> None:
    text = stamped(lines)
    edges = sorted({0, len(text), *(c for c in cuts if c < len(text))})
    at = Position(Marks(), 0)
    pieces = [p for a, b in itertools.pairwise(edges) for p in at.feed(text[a:b])]
    assert taken(pieces) == b"".join(line + b"\n" for _, line in lines)
    offset = 0
    for piece in pieces:
        assert piece.offset == offset
        offset += len(piece.data)


@given(lines=_LINES, seen=st.integers(0, 12), after=st.integers(0, 60))
def test_it_is_taken_up_again_at_any_byte(
    lines: list[tuple[int, bytes]], seen: int, after: int
) -> None:
    whole = b"".join(line + b"\n" for _, line in lines)
    after = min(after, len(whole))
    marks = Marks()
    list(Position(marks, 0).feed(stamped(lines[:seen])))
    again = Position(marks, after)
    since = int(again.since) - SECOND if again.since else 0
    answer = [line for line in lines if line[0] >= since * 1_000_000_000]
    assert taken(list(again.feed(stamped(answer)))) == whole[after:]


def test_a_dropped_connection_costs_nothing() -> None:
    lines = [(0, b"a"), (0, b"b"), (0, b"c"), (1_000_000_000, b"d")]
    at = Position(Marks(), 0)
    first = list(at.feed(stamped(lines[:2]) + b"2026-12-01T10:00:0"))
    at.answer()
    assert taken(first + list(at.feed(stamped(lines)))) == b"a\nb\nc\nd\n"


def test_what_was_rotated_away_is_told() -> None:
    at = Position(Marks(), 0)
    list(at.feed(stamped([(0, b"a"), (1, b"b")])))
    at.answer()
    hole, piece = at.feed(stamped([(9_000_000_000, b"z")]))
    assert (hole.offset, hole.lost, hole.reason) == (4, 1, ROTATED)
    assert (piece.offset, piece.data) == (5, b"z\n")


def test_a_long_line_is_passed_on_in_parts() -> None:
    reader = LineReader()
    text = b"x" * (3 * MAX_HELD)
    parts = list(reader.feed(stamped([(5, text)])[:-1])) + list(reader.feed(b"\n"))
    assert b"".join(p.data for p in parts) == text + b"\n"
    assert [p.first for p in parts] == [True] + [False] * (len(parts) - 1)
    assert [p.last for p in parts] == [False] * (len(parts) - 1) + [True]


def test_words_of_the_server_in_between_are_kept() -> None:
    at = Position(Marks(), 0)
    pieces = list(at.feed(stamped([(0, b"a")]) + b"unable to retrieve container logs\n"))
    assert taken(pieces) == b"a\nunable to retrieve container logs\n"


def test_a_last_line_without_an_end_counts() -> None:
    at = Position(Marks(), 0)
    pieces = list(at.feed(stamped([(0, b"a")])[:-1])) + list(at.rest())
    assert taken(pieces) == b"a"


@pytest.mark.parametrize("data", [b"", b"2026", b" ", b"\n", b"2026-12-01T10:00:00Z\n"])
def test_odd_beginnings_do_no_harm(data: bytes) -> None:
    at = Position(Marks(), 0)
    taken([*at.feed(data), *at.rest()])


def test_each_piece_has_its_time() -> None:
    at = Position(Marks(), 0)
    pieces = list(at.feed(stamped([(0, b"a"), (0, b"b"), (2_000_000, b"c")])))
    assert [(p.unix_ms - SECOND * 1000, p.data) for p in pieces] == [(0, b"a\nb\n"), (2, b"c\n")]


def test_marks_outlive_the_agent(tmp_path: Path) -> None:
    path = tmp_path / "marks" / "v-0"
    marks, mark = Marks(path), Mark()
    for number in range(1, 100):
        mark = after_line(mark, number * 20_000, number * 1_000_000_000)
        marks.note(mark)
    marks.release(1_000_001)
    assert Marks(path).before(10**9) == Mark(1_000_000, 50 * 1_000_000_000, 1)
    assert Marks(path).before(999_999) == Mark()
    marks.drop()
    assert not path.exists()
    path.write_text("nonsense")
    assert Marks(path).before(10**9) == Mark()
