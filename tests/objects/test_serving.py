"""What the object route does with bodies and ranges."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from verderer.core.errors import Conflict, Invalid, NotFound, TooLarge
from verderer.objects.config import ObjectsConfig
from verderer.objects.serving import (
    ByteRange,
    Download,
    RangeNotSatisfiable,
    download,
    parse_range,
    receive,
)
from verderer.objects.store import ObjectStore, open_store


@pytest.fixture
def shelf() -> ObjectStore:
    return open_store(ObjectsConfig(url="memory://"))


async def pieces(*chunks: bytes) -> AsyncIterator[bytes]:
    for chunk in chunks:
        yield chunk


async def content(answer: Download) -> bytes:
    assert answer.body is not None
    return b"".join([chunk async for chunk in answer.body])


async def test_a_body_within_the_limit_is_stored(shelf: ObjectStore) -> None:
    stored = await receive(shelf, "a", pieces(b"he", b"llo"), limit=5, declared=5)
    assert stored.size == 5
    assert await shelf.get("a") == b"hello"


async def test_a_body_announced_too_large_is_refused_unread(shelf: ObjectStore) -> None:
    body = pieces(b"never read")
    with pytest.raises(TooLarge):
        await receive(shelf, "a", body, limit=5, declared=6)
    assert await anext(body) == b"never read"


@pytest.mark.parametrize("big", [6, 20 * 1024 * 1024], ids=["by a byte", "by many parts"])
async def test_a_body_that_grows_too_large_leaves_nothing(shelf: ObjectStore, big: int) -> None:
    chunk = b"x" * min(big, 1024 * 1024)
    with pytest.raises(TooLarge):
        await receive(shelf, "a", pieces(*[chunk] * (big // len(chunk))), limit=big - 1)
    assert await shelf.list("") == []


@pytest.mark.parametrize("declared", [4, 6], ids=["longer than announced", "broken off"])
async def test_a_body_of_another_length_leaves_nothing(shelf: ObjectStore, declared: int) -> None:
    with pytest.raises(Invalid) as refused:
        await receive(shelf, "a", pieces(b"hello"), limit=100, declared=declared)
    assert refused.value.code == "body_incomplete"
    assert await shelf.list("") == []


async def test_create_only_is_passed_on(shelf: ObjectStore) -> None:
    await shelf.put("a", b"old")
    with pytest.raises(Conflict):
        await receive(shelf, "a", pieces(b"new"), limit=9, create_only=True)


async def test_a_whole_download(shelf: ObjectStore) -> None:
    stored = await shelf.put("a", b"0123456789")
    answer = await download(shelf, "a")
    assert answer.status == 200
    assert answer.headers["content-length"] == "10"
    assert answer.headers["etag"] == stored.etag
    assert await content(answer) == b"0123456789"


async def test_a_browser_never_runs_an_object(shelf: ObjectStore) -> None:
    await shelf.put("a.html", b"<script>alert(1)</script>")
    headers = (await download(shelf, "a.html")).headers
    assert headers["content-type"] == "application/octet-stream"
    assert headers["content-disposition"] == "attachment"
    assert headers["x-content-type-options"] == "nosniff"
    assert headers["content-security-policy"].startswith("sandbox")


async def test_a_range_is_a_partial_answer(shelf: ObjectStore) -> None:
    await shelf.put("a", b"0123456789")
    answer = await download(shelf, "a", range_header="bytes=2-4")
    assert answer.status == 206
    assert answer.headers["content-range"] == "bytes 2-4/10"
    assert answer.headers["content-length"] == "3"
    assert await content(answer) == b"234"


async def test_head_has_the_same_headers_and_no_body(shelf: ObjectStore) -> None:
    await shelf.put("a", b"0123456789")
    for range_header in ("", "bytes=2-4"):
        got = await download(shelf, "a", range_header=range_header)
        asked = await download(shelf, "a", range_header=range_header, head=True)
        assert (asked.status, asked.headers, asked.body) == (got.status, got.headers, None)


async def test_an_unchanged_object_is_not_sent_again(shelf: ObjectStore) -> None:
    etag = (await shelf.put("a", b"x")).etag
    for header in (etag, f'"other", W/{etag}', "*"):
        answer = await download(shelf, "a", if_none_match=header)
        assert (answer.status, answer.body) == (304, None)
    assert (await download(shelf, "a", if_none_match='"other"')).status == 200


async def test_an_empty_object_is_served(shelf: ObjectStore) -> None:
    await shelf.put("a", b"")
    answer = await download(shelf, "a")
    assert answer.headers["content-length"] == "0"
    assert await content(answer) == b""


async def test_what_is_not_there_is_not_found(shelf: ObjectStore) -> None:
    for head in (True, False):
        with pytest.raises(NotFound):
            await download(shelf, "a", head=head)
        with pytest.raises(NotFound):
            await download(shelf, "a", range_header="bytes=0-1", head=head)


@pytest.mark.parametrize(
    ("header", "expected"),
    [
        ("bytes=0-0", ByteRange(0, 1)),
        ("bytes=0-", ByteRange(0, 10)),
        ("bytes=5-", ByteRange(5, 10)),
        ("bytes=5-999999999999999", ByteRange(5, 10)),
        ("bytes=-3", ByteRange(7, 10)),
        ("bytes=-99", ByteRange(0, 10)),
        ("", None),
        ("bytes=-", None),
        ("bytes=5-2", None),
        ("bytes=0-1,3-4", None),
        ("lines=0-1", None),
        ("bytes=a-b", None),
        ("bytes=٣-٤", None),
        ("bytes=" + "9" * 5000 + "-", None),
    ],
)
def test_ranges(header: str, expected: ByteRange | None) -> None:
    assert parse_range(header, 10) == expected


@pytest.mark.parametrize("header", ["bytes=10-", "bytes=10-20", "bytes=-0"])
def test_a_range_outside_is_not_satisfiable(header: str) -> None:
    with pytest.raises(RangeNotSatisfiable) as refused:
        parse_range(header, 10)
    assert refused.value.size == 10


@given(st.text(max_size=30), st.integers(0, 100))
def test_any_header_gives_a_range_within_the_object(header: str, size: int) -> None:
    try:
        asked = parse_range("bytes=" + header, size)
    except RangeNotSatisfiable:
        return
    if asked is not None:
        assert 0 <= asked.start < asked.end <= size
