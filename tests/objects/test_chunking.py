"""When a chunk is due, and that no byte is lost on the way into chunks."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from verderer.objects.chunking import ChunkBuilder, ChunkLimits
from verderer.objects.logs import Chunk, Gap, Mark, encode_chunk

SMALL = ChunkLimits(seal_bytes=10)


def filled(pieces: list[bytes], limits: ChunkLimits) -> list[Chunk]:
    builder = ChunkBuilder(limits=limits)
    done: list[Chunk] = []
    for number, piece in enumerate(pieces):
        rest = piece
        while rest := builder.add(rest, unix_ms=number, now_s=0.0):
            done.append(builder.take())
            builder = builder.successor()
    return [*done, builder.take()]


@given(pieces=st.lists(st.binary(max_size=60), max_size=20), size=st.integers(1, 20))
def test_chunks_together_are_the_stream(pieces: list[bytes], size: int) -> None:
    chunks = filled(pieces, ChunkLimits(seal_bytes=size))
    assert b"".join(chunk.data for chunk in chunks) == b"".join(pieces)
    at = 0
    for chunk in chunks:
        assert chunk.first_byte == at
        assert len(chunk.data) <= size
        assert encode_chunk(chunk)
        at = chunk.end


def test_an_empty_chunk_is_never_due() -> None:
    builder = ChunkBuilder()
    assert builder.add(b"", unix_ms=1, now_s=5.0) == b""
    assert builder.empty
    assert builder.due_s() is None
    assert not builder.should_flush(1e9)
    assert not builder.should_seal(1e9)


def test_new_bytes_are_written_within_half_a_second() -> None:
    builder = ChunkBuilder()
    builder.add(b"a", unix_ms=0, now_s=100.0)
    builder.add(b"b", unix_ms=0, now_s=100.4)
    assert builder.due_s() == 100.5
    assert not builder.should_flush(100.49)
    assert builder.should_flush(100.5)
    assert builder.take().data == b"ab"
    assert not builder.should_flush(200.0)
    assert builder.due_s() == 160.0, "a quiet step costs nothing more until the chunk is sealed"


def test_a_failed_write_is_tried_again() -> None:
    builder = ChunkBuilder()
    builder.add(b"a", unix_ms=0, now_s=100.0)
    builder.take()
    builder.put_back(101.0)
    assert builder.due_s() == 101.5
    assert builder.take().data == b"a"


def test_a_chunk_is_sealed_when_full_or_old() -> None:
    builder = ChunkBuilder(limits=SMALL)
    assert builder.add(b"123456789", unix_ms=0, now_s=0.0) == b""
    assert not builder.should_seal(59.9)
    assert builder.should_seal(60.0)
    assert builder.add(b"abc", unix_ms=0, now_s=1.0) == b"bc"
    assert builder.full
    assert builder.should_seal(1.0)
    assert builder.add(b"bc", unix_ms=0, now_s=1.0) == b"bc"
    following = builder.successor()
    assert following.end == 10
    assert following.empty


def test_marks_are_at_most_one_in_ten_milliseconds_but_show_a_clock_that_goes_back() -> None:
    builder = ChunkBuilder()
    for unix_ms in (1000, 1003, 1009, 1010, 1500, 900):
        builder.add(b"x", unix_ms=unix_ms, now_s=0.0)
    assert builder.take().marks == (Mark(0, 1000), Mark(3, 1010), Mark(4, 1500), Mark(5, 900))


def test_losses_at_one_place_are_one_gap() -> None:
    builder = ChunkBuilder(first_byte=50)
    builder.add(b"ab", unix_ms=0, now_s=0.0)
    builder.add_gap(3, "too fast", now_s=0.0)
    builder.add_gap(4, "too fast", now_s=0.0)
    builder.add_gap(1, "disk full", now_s=0.0)
    builder.add(b"c", unix_ms=0, now_s=0.0)
    builder.add_gap(0, "agent restarted", now_s=0.0)
    builder.add_gap(9, "agent restarted", now_s=0.0)
    assert builder.take().gaps == (
        Gap(52, 7, "too fast"),
        Gap(52, 1, "disk full"),
        Gap(53, 0, "agent restarted"),
    )


def test_a_gap_alone_is_worth_a_chunk() -> None:
    builder = ChunkBuilder()
    builder.add_gap(3, "too fast", now_s=1.0)
    assert builder.should_flush(1.5)
    assert builder.should_seal(61.0)


def test_a_mad_clock_seals_instead_of_growing_the_header() -> None:
    builder = ChunkBuilder()
    count = 0
    while not builder.full:
        builder.add(b"x", unix_ms=(count % 2) * 10**12, now_s=0.0)
        count += 1
    assert count <= 10_000
    assert len(encode_chunk(builder.take())) < 200_000


def test_endless_losses_seal_instead_of_growing_the_header() -> None:
    builder = ChunkBuilder()
    count = 0
    while not builder.full:
        builder.add_gap(1, str(count), now_s=0.0)
        count += 1
    assert count <= 1000
    assert builder.add(b"x", unix_ms=0, now_s=0.0) == b"x"
