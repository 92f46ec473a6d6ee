"""What an object route does, without an HTTP framework: take a body in, give a range out.

The route checks the grant, calls `receive` or `download`, and turns the answer into its
framework's response.
"""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass, field

from verderer.core.errors import Invalid, NotFound, Refusal, TooLarge
from verderer.objects.store import ObjectStore, Stored

_RANGE = re.compile(r"bytes=(\d{0,15})-(\d{0,15})\Z", re.ASCII)


class RangeNotSatisfiable(Refusal):
    """No byte of the asked range exists (416); `size` goes into `Content-Range: bytes */SIZE`."""

    code = "range_not_satisfiable"

    def __init__(self, size: int) -> None:
        super().__init__(f"the object has {size} bytes", hint="ask for a range within them")
        self.size = size


@dataclass(frozen=True, slots=True)
class ByteRange:
    """Bytes `start` up to but without `end`."""

    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Download:
    """A response: 200, 206 or 304, its headers (lower-case names), and its body."""

    status: int
    headers: Mapping[str, str]
    body: AsyncIterator[bytes] | None = field(repr=False)
    """None when there is nothing to send (304, HEAD)."""


async def receive(
    store: ObjectStore,
    key: str,
    body: AsyncIterator[bytes],
    *,
    limit: int,
    declared: int | None = None,
    create_only: bool = False,
) -> Stored:
    """Write a request's body, of at most `limit` bytes; `declared` is its Content-Length.

    Nothing is stored unless all of the body came.

    Raises:
        TooLarge: more than `limit`, known before the first byte where it was declared.
        Invalid: the body ended before or after what was declared.
        Conflict: with `create_only`, the object exists.
        Fault: the store failed.
    """
    if declared is not None and declared > limit:
        raise _too_large(limit)
    counted = _counted(body, limit, declared)
    return await store.put(key, counted, create_only=create_only, size=declared)


async def download(
    store: ObjectStore,
    key: str,
    *,
    range_header: str = "",
    if_none_match: str = "",
    head: bool = False,
) -> Download:
    """Answer a GET or HEAD.

    One range is honoured; several, or a malformed one, are answered with the whole, as RFC 9110
    allows.

    Raises:
        NotFound: there is no such object.
        RangeNotSatisfiable: no byte of the range exists.
        Fault: the store failed; also while the body is read.
    """
    if head or range_header or if_none_match:
        stored = await store.head(key)
        if stored is None:
            raise NotFound(f"there is no object {key!r}")
        if if_none_match and _matches(if_none_match, stored.etag):
            return Download(304, _headers(stored), None)
        asked = parse_range(range_header, stored.size)
        if head:
            return _answer(stored, asked, None)
        if asked is not None:
            length = asked.end - asked.start
            opened = await store.open(key, start=asked.start, length=length)
            return _answer(opened.stored, asked, opened.body)
    opened = await store.open(key)
    return _answer(opened.stored, None, opened.body)


def parse_range(header: str, size: int) -> ByteRange | None:
    """What a `Range` header asks of an object of `size` bytes; None for the whole of it.

    Raises:
        RangeNotSatisfiable: it is well-formed and lies outside the object.
    """
    match = _RANGE.match(header.strip())
    if match is None or match[1] == match[2] == "":
        return None
    if match[1] == "":
        length = int(match[2])
        if length == 0 or size == 0:
            raise RangeNotSatisfiable(size)
        return ByteRange(max(0, size - length), size)
    start = int(match[1])
    last = int(match[2]) if match[2] else size - 1
    if match[2] and last < start:
        return None
    if start >= size:
        raise RangeNotSatisfiable(size)
    return ByteRange(start, min(last + 1, size))


async def _counted(
    body: AsyncIterator[bytes], limit: int, declared: int | None
) -> AsyncIterator[bytes]:
    received = 0
    async for chunk in body:
        received += len(chunk)
        if received > limit:
            raise _too_large(limit)
        yield chunk
    if declared is not None and received != declared:
        raise Invalid(
            f"the body has {received} bytes; {declared} were announced",
            code="body_incomplete",
            hint="send the object again",
        )


def _too_large(limit: int) -> TooLarge:
    return TooLarge(f"an object sent this way has at most {limit} bytes", hint="split the file")


def _matches(header: str, etag: str) -> bool:
    tags = (tag.strip().removeprefix("W/") for tag in header.split(","))
    return any(tag in ("*", etag) for tag in tags)


def _answer(stored: Stored, asked: ByteRange | None, body: AsyncIterator[bytes] | None) -> Download:
    headers = _headers(stored)
    if asked is None:
        headers["content-length"] = str(stored.size)
        return Download(200, headers, body)
    headers["content-length"] = str(asked.end - asked.start)
    headers["content-range"] = f"bytes {asked.start}-{asked.end - 1}/{stored.size}"
    return Download(206, headers, body)


def _headers(stored: Stored) -> dict[str, str]:
    return {
        "accept-ranges": "bytes",
        "cache-control": "private, no-cache",
        # Objects are what users' programs wrote: a browser must save them, never run them.
        "content-disposition": "attachment",
        "content-security-policy": "sandbox; default-src 'none'",
        "content-type": "application/octet-stream",
        "etag": stored.etag,
        "x-content-type-options": "nosniff",
    }
