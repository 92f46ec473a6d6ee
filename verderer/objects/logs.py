"""The log chunk: consecutive bytes of one replica's output, compressed, in one object.

A chunk describes itself, so that a log can be read with the objects alone: where its bytes stand in
the stream, when they were written (marks), and what was lost (gaps). Offsets count the bytes that
were kept; a gap at an offset says that bytes are missing just before the byte at that offset.

Layout: magic `VLOG`, version (1 byte), header length (4 bytes, little endian), CRC-32 of the header
(4 bytes, little endian), header, zstd frame (nothing when there are no bytes). The header is a row
of unsigned LEB128 numbers: first byte, raw length, line count, number of marks, the marks, number
of gaps, the gaps. A mark is the distance from the mark before (bytes; milliseconds, zigzag because
clocks go back); a gap is the distance from the gap before, the bytes lost, and its reason as length
and UTF-8.
"""

from __future__ import annotations

import zlib
from dataclasses import dataclass

import zstandard

from verderer.core.errors import Invalid
from verderer.objects.varints import VarintReader, append_signed, append_unsigned

MAX_RAW_BYTES = 64 * 1024 * 1024
"""No chunk holds more; a frame that claims to is refused before it is unpacked."""
MAX_HEADER_BYTES = 1024 * 1024
MAX_REASON_BYTES = 200
_MAX_WINDOW = 64 * 1024 * 1024
_MAGIC = b"VLOG"
_VERSION = 1
_PREAMBLE = len(_MAGIC) + 1 + 4 + 4
_LEVEL = 1
"""On lines of ordinary output level 3 is slower and no smaller."""


@dataclass(frozen=True, slots=True)
class Mark:
    """The bytes from `offset` up to the next mark were read at `unix_ms`."""

    offset: int
    unix_ms: int


@dataclass(frozen=True, slots=True)
class Gap:
    """Bytes that were written but are not kept, just before the byte at `offset`."""

    offset: int
    lost: int
    """Bytes; 0 when nobody knows how many."""
    reason: str


@dataclass(frozen=True, slots=True)
class Chunk:
    """Consecutive bytes of a stream."""

    first_byte: int
    """Offset of `data[0]` in the stream."""
    data: bytes
    marks: tuple[Mark, ...] = ()
    gaps: tuple[Gap, ...] = ()

    @property
    def end(self) -> int:
        """Offset just after the last byte."""
        return self.first_byte + len(self.data)

    @property
    def lines(self) -> int:
        """Line feeds among the bytes."""
        return self.data.count(b"\n")


@dataclass(frozen=True, slots=True)
class ChunkHeader:
    """What a chunk says about itself without being unpacked."""

    first_byte: int
    length: int
    """Raw bytes."""
    lines: int
    marks: tuple[Mark, ...]
    gaps: tuple[Gap, ...]


def encode_chunk(chunk: Chunk) -> bytes:
    """The object's bytes.

    Raises:
        ValueError: more than `MAX_RAW_BYTES`, or marks or gaps out of order or outside the chunk.
    """
    header = _header(chunk)
    if len(chunk.data) > MAX_RAW_BYTES or len(header) > MAX_HEADER_BYTES:
        raise ValueError("a log chunk is limited to 64 MiB of data and 1 MiB of header")
    packer = zstandard.ZstdCompressor(level=_LEVEL, write_checksum=True, write_content_size=True)
    frame = packer.compress(chunk.data) if chunk.data else b""
    return b"".join(
        [
            _MAGIC,
            bytes([_VERSION]),
            len(header).to_bytes(4, "little"),
            zlib.crc32(header).to_bytes(4, "little"),
            header,
            frame,
        ]
    )


def decode_chunk(encoded: bytes) -> Chunk:
    """The chunk that `encoded` holds, at the cost of at most `MAX_RAW_BYTES` of memory.

    Raises:
        Invalid: anything else than what `encode_chunk` gives, whatever the bytes.
    """
    header, start = _decoded_header(encoded)
    data = _decompressed(encoded[start:], header.length)
    if data.count(b"\n") != header.lines:
        raise _invalid("its line count is wrong")
    return Chunk(header.first_byte, data, header.marks, header.gaps)


def decode_header(encoded: bytes) -> ChunkHeader:
    """What the chunk says of itself; only the beginning of the object is needed.

    Raises:
        Invalid: as `decode_chunk`, but the compressed bytes are not looked at.
    """
    return _decoded_header(encoded)[0]


def _header(chunk: Chunk) -> bytes:
    out = bytearray()
    for number in (chunk.first_byte, len(chunk.data), chunk.lines, len(chunk.marks)):
        append_unsigned(out, number)
    offset, unix_ms = chunk.first_byte, 0
    for mark in chunk.marks:
        append_unsigned(out, mark.offset - offset)
        append_signed(out, mark.unix_ms - unix_ms)
        offset, unix_ms = mark.offset, mark.unix_ms
    if offset > chunk.end:
        raise ValueError("a mark lies beyond the chunk")
    append_unsigned(out, len(chunk.gaps))
    offset = chunk.first_byte
    for gap in chunk.gaps:
        append_unsigned(out, gap.offset - offset)
        append_unsigned(out, gap.lost)
        reason = _bounded(gap.reason)
        append_unsigned(out, len(reason))
        out += reason
        offset = gap.offset
    if offset > chunk.end:
        raise ValueError("a gap lies beyond the chunk")
    return bytes(out)


def _bounded(reason: str) -> bytes:
    whole = reason.encode("utf-8", "replace")
    return whole[:MAX_REASON_BYTES].decode("utf-8", "ignore").encode()


def _decoded_header(encoded: bytes) -> tuple[ChunkHeader, int]:
    if len(encoded) < _PREAMBLE or encoded[:4] != _MAGIC:
        raise _invalid("it does not begin like one")
    if encoded[4] != _VERSION:
        raise _invalid(f"it has version {encoded[4]}; this release reads version {_VERSION}")
    length = int.from_bytes(encoded[5:9], "little")
    end = _PREAMBLE + length
    if length > MAX_HEADER_BYTES or end > len(encoded):
        raise _invalid("its header is longer than it may be")
    header = encoded[_PREAMBLE:end]
    if zlib.crc32(header) != int.from_bytes(encoded[9:13], "little"):
        raise _invalid("its header is damaged")
    try:
        return _read_header(VarintReader(header)), end
    except ValueError as error:
        raise _invalid(str(error)) from error


def _read_header(reader: VarintReader) -> ChunkHeader:
    first_byte, length, lines = reader.unsigned(), reader.unsigned(), reader.unsigned()
    if length > MAX_RAW_BYTES:
        raise ValueError(f"it claims {length} bytes; the limit is {MAX_RAW_BYTES}")
    end = first_byte + length
    marks = _read_marks(reader, first_byte, end)
    gaps = _read_gaps(reader, first_byte, end)
    if not reader.ended:
        raise ValueError("its header has more than belongs there")
    return ChunkHeader(first_byte, length, lines, marks, gaps)


def _read_marks(reader: VarintReader, offset: int, end: int) -> tuple[Mark, ...]:
    unix_ms = 0
    marks: list[Mark] = []
    for _ in range(reader.count()):
        offset += reader.unsigned()
        unix_ms += reader.signed()
        marks.append(Mark(offset, unix_ms))
    if offset > end:
        raise ValueError("a mark lies beyond its bytes")
    return tuple(marks)


def _read_gaps(reader: VarintReader, offset: int, end: int) -> tuple[Gap, ...]:
    gaps: list[Gap] = []
    for _ in range(reader.count()):
        offset += reader.unsigned()
        lost = reader.unsigned()
        reason = reader.raw(reader.unsigned(), at_most=MAX_REASON_BYTES)
        gaps.append(Gap(offset, lost, reason.decode("utf-8")))
    if offset > end:
        raise ValueError("a gap lies beyond its bytes")
    return tuple(gaps)


def _decompressed(frame: bytes, length: int) -> bytes:
    if length == 0:
        # The library looks no further when a frame claims to hold nothing.
        if frame:
            raise _invalid("its size is not what its header says")
        return b""
    try:
        # The library trusts the frame's own size over the limit it is given: compare first.
        if zstandard.get_frame_parameters(frame).content_size != length:
            raise _invalid("its size is not what its header says")
        unpacker = zstandard.ZstdDecompressor(max_window_size=_MAX_WINDOW)
        data: bytes = unpacker.decompress(frame, max_output_size=length, allow_extra_data=False)
    except (zstandard.ZstdError, MemoryError) as error:
        raise _invalid("its compressed bytes are damaged") from error
    if len(data) != length:
        raise _invalid("its size is not what its header says")
    return data


def _invalid(why: str) -> Invalid:
    return Invalid(
        f"this is not a whole log chunk: {why}",
        code="invalid_log_chunk",
        hint="the object was damaged or written by something else",
    )
