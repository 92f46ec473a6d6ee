"""The log chunk format: what goes in comes out, and no bytes from outside do harm."""

from __future__ import annotations

import zlib
from contextlib import suppress

import pytest
import zstandard
from hypothesis import example, given
from hypothesis import strategies as st

from verderer.core.errors import Invalid
from verderer.objects.logs import (
    MAX_RAW_BYTES,
    MAX_REASON_BYTES,
    Chunk,
    Gap,
    Mark,
    decode_chunk,
    decode_header,
    encode_chunk,
)
from verderer.objects.varints import append_unsigned


@st.composite
def chunks(draw: st.DrawFn) -> Chunk:
    first = draw(st.integers(0, 2**50))
    data = draw(st.binary(max_size=2000))
    inside = st.integers(first, first + len(data))
    marks = [
        Mark(at, draw(st.integers(-(2**45), 2**45)))
        for at in sorted(draw(st.lists(inside, max_size=5)))
    ]
    gaps = [
        Gap(at, draw(st.integers(0, 2**50)), draw(st.text(max_size=40)))
        for at in sorted(draw(st.lists(inside, max_size=5)))
    ]
    return Chunk(first, data, tuple(marks), tuple(gaps))


def framed(header: bytes, frame: bytes) -> bytes:
    length = len(header).to_bytes(4, "little")
    return b"VLOG\x01" + length + zlib.crc32(header).to_bytes(4, "little") + header + frame


def numbers(*values: int) -> bytes:
    out = bytearray()
    for value in values:
        append_unsigned(out, value)
    return bytes(out)


@given(chunks())
def test_a_chunk_comes_back_as_it_was(chunk: Chunk) -> None:
    encoded = encode_chunk(chunk)
    assert decode_chunk(encoded) == chunk
    header = decode_header(encoded)
    assert (header.first_byte, header.length) == (chunk.first_byte, len(chunk.data))
    assert (header.lines, header.marks, header.gaps) == (chunk.lines, chunk.marks, chunk.gaps)


@given(st.binary())
@example(b"")
@example(b"VLOG")
@example(b"VLOG\x01" + b"\xff" * 20)
@example(framed(b"", b""))
@example(framed(numbers(0, 0, 0, 2**40), b""))
def test_any_bytes_are_a_chunk_or_invalid(junk: bytes) -> None:
    for decode in (decode_chunk, decode_header):
        with suppress(Invalid):
            decode(junk)


@given(chunk=chunks(), data=st.data())
def test_a_damaged_chunk_is_never_taken_for_another(chunk: Chunk, data: st.DataObject) -> None:
    encoded = bytearray(encode_chunk(chunk))
    at = data.draw(st.integers(0, len(encoded) - 1))
    encoded[at] ^= data.draw(st.integers(1, 255))
    try:
        assert decode_chunk(bytes(encoded)) == chunk
    except Invalid:
        pass


@given(chunk=chunks(), data=st.data())
def test_a_cut_or_lengthened_chunk_is_invalid(chunk: Chunk, data: st.DataObject) -> None:
    encoded = encode_chunk(chunk)
    cut = data.draw(st.integers(0, len(encoded) - 1))
    for damaged in (encoded[:cut], encoded + b"x"):
        with pytest.raises(Invalid):
            decode_chunk(damaged)


@given(st.binary(max_size=60))
def test_a_genuine_checksum_over_a_junk_header_is_still_invalid_or_whole(header: bytes) -> None:
    try:
        chunk = decode_chunk(framed(header, b""))
    except Invalid:
        return
    assert chunk.data == b""


def test_a_bomb_is_refused_before_it_is_unpacked() -> None:
    bomb = zstandard.ZstdCompressor().compress(b"\0" * (MAX_RAW_BYTES + 1))
    assert len(bomb) < 10_000
    for claimed in (MAX_RAW_BYTES + 1, MAX_RAW_BYTES, 10):
        with pytest.raises(Invalid):
            decode_chunk(framed(numbers(0, claimed, 0, 0, 0), bomb))


def test_a_bomb_that_hides_its_size_is_refused() -> None:
    packer = zstandard.ZstdCompressor(write_content_size=False).compressobj()
    bomb = packer.compress(b"\0" * (8 * 1024 * 1024)) + packer.flush()
    with pytest.raises(Invalid):
        decode_chunk(framed(numbers(0, 10, 0, 0, 0), bomb))


def test_a_second_frame_is_refused() -> None:
    frame = zstandard.ZstdCompressor().compress(b"one")
    with pytest.raises(Invalid):
        decode_chunk(framed(numbers(0, 3, 0, 0, 0), frame + frame))


def test_a_wrong_line_count_is_refused() -> None:
    frame = zstandard.ZstdCompressor().compress(b"a\n")
    assert decode_chunk(framed(numbers(0, 2, 1, 0, 0), frame)).data == b"a\n"
    with pytest.raises(Invalid, match="line count"):
        decode_chunk(framed(numbers(0, 2, 2, 0, 0), frame))


def test_another_version_is_named() -> None:
    encoded = bytearray(encode_chunk(Chunk(0, b"x")))
    encoded[4] = 9
    with pytest.raises(Invalid, match="version 9"):
        decode_chunk(bytes(encoded))


def test_a_long_reason_is_cut_between_characters() -> None:
    chunk = decode_chunk(encode_chunk(Chunk(0, b"", (), (Gap(0, 1, "é" * 1000),))))
    assert chunk.gaps[0].reason == "é" * (MAX_REASON_BYTES // 2)


@pytest.mark.parametrize(
    "chunk",
    [
        Chunk(5, b"abc", (Mark(9, 0),)),
        Chunk(5, b"abc", (Mark(4, 0),)),
        Chunk(5, b"abc", (), (Gap(9, 1, ""),)),
        Chunk(5, b"abc", (), (Gap(7, 1, ""), Gap(6, 1, ""))),
        Chunk(-1, b"abc"),
    ],
    ids=["a mark beyond", "a mark before", "a gap beyond", "gaps out of order", "a negative start"],
)
def test_an_impossible_chunk_is_a_mistake_of_the_caller(chunk: Chunk) -> None:
    with pytest.raises(ValueError, match=r"beyond|within"):
        encode_chunk(chunk)
