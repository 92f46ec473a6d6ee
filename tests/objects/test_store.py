"""One contract, kept by every backend."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.objects import servers
from verderer.core.errors import Conflict, Fault, Invalid, NotFound
from verderer.objects.backends.uploads import PART_BYTES
from verderer.objects.config import Backend, ObjectsConfig
from verderer.objects.store import ObjectStore, open_store

MIB = 1024 * 1024
ODD_KEYS = [
    "plain",
    "with space/and more",
    "ü/é/日本語",
    "percent%2Fsign",
    "q?x&y=z+w",
    "star*",
    ".hidden",
    "a:b|c<d>\"e'f`{g}^~",
    "x" * 240,
]


async def pieces(*chunks: bytes) -> AsyncIterator[bytes]:
    for chunk in chunks:
        yield chunk


async def test_what_was_put_is_read_back_whole_and_in_part(store: ObjectStore) -> None:
    stored = await store.put("a/b", b"hello world")
    assert (stored.key, stored.size) == ("a/b", 11)
    assert stored.etag
    assert await store.get("a/b") == b"hello world"
    assert await store.get("a/b", start=6) == b"world"
    assert await store.get("a/b", start=2, length=3) == b"llo"
    assert await store.get("a/b", start=6, length=100) == b"world"


async def test_nothing_is_read_at_or_beyond_the_end(store: ObjectStore) -> None:
    await store.put("a/b", b"hello")
    await store.put("a/empty", b"")
    for key, start, length in [
        ("a/b", 5, None),
        ("a/b", 500, 3),
        ("a/b", 1, 0),
        ("a/empty", 0, None),
        ("a/empty", 0, 10),
        ("a/empty", 3, None),
    ]:
        assert await store.get(key, start=start, length=length) == b""
        assert [chunk async for chunk in store.stream(key, start=start)] in ([], [b"ello"])


async def test_head_agrees_with_put_and_with_list(store: ObjectStore) -> None:
    put = await store.put("a/b", b"hello")
    head = await store.head("a/b")
    assert head is not None
    assert (head.key, head.size, head.etag) == (put.key, put.size, put.etag)
    assert head.modified is not None
    (listed,) = await store.list("a/")
    assert (listed.key, listed.size, listed.etag) == (head.key, head.size, head.etag)
    assert listed.modified is not None
    assert abs((listed.modified - head.modified).total_seconds()) < 1


async def test_the_etag_changes_with_the_bytes(store: ObjectStore) -> None:
    first = await store.put("a/b", b"one")
    second = await store.put("a/b", b"two!")
    assert first.etag != second.etag
    assert await store.get("a/b") == b"two!"


@pytest.mark.parametrize("key", ["nothing", "folder", "folder/file/below"])
async def test_what_is_not_there_is_not_found(store: ObjectStore, key: str) -> None:
    await store.put("folder/file", b"x")
    assert await store.head(key) is None
    with pytest.raises(NotFound):
        await store.get(key)
    with pytest.raises(NotFound):
        await store.get(key, start=5, length=0)
    with pytest.raises(NotFound):
        await store.open(key)
    await store.delete(key)
    assert await store.get("folder/file") == b"x"


async def test_delete_can_be_repeated(store: ObjectStore) -> None:
    await store.put("a/b", b"x")
    await store.delete("a/b")
    await store.delete("a/b")
    assert await store.head("a/b") is None
    assert await store.list("") == []


async def test_create_only_never_overwrites(store: ObjectStore) -> None:
    await store.put("a/b", b"first", create_only=True)
    with pytest.raises(Conflict, match="exists already"):
        await store.put("a/b", b"second", create_only=True)
    with pytest.raises(Conflict):
        await store.put("a/b", pieces(b"sec", b"ond"), create_only=True)
    assert await store.get("a/b") == b"first"


async def test_of_many_who_create_at_once_one_wins(store: ObjectStore) -> None:
    tries = [store.put("race", b"%d" % n, create_only=True) for n in range(8)]
    done = await asyncio.gather(*tries, return_exceptions=True)
    won = [n for n, result in enumerate(done) if not isinstance(result, BaseException)]
    assert len(won) == 1
    assert all(isinstance(result, Conflict) for n, result in enumerate(done) if n not in won)
    assert await store.get("race") == b"%d" % won[0]


async def test_a_big_stream_is_written_in_parts(store: ObjectStore) -> None:
    chunks = [bytes([n]) * MIB for n in range(11)]
    stored = await store.put("big", pieces(*chunks))
    assert stored.size == 11 * MIB > PART_BYTES
    head = await store.head("big")
    assert head is not None
    assert head.etag == stored.etag
    read = b"".join([chunk async for chunk in store.stream("big", start=MIB // 2)])
    assert read == b"".join(chunks)[MIB // 2 :]


async def test_a_big_stream_can_be_create_only(store: ObjectStore) -> None:
    chunks = [b"x" * MIB] * 9
    stored = await store.put("big", pieces(*chunks), create_only=True)
    assert stored.size == 9 * MIB
    with pytest.raises(Conflict):
        await store.put("big", pieces(*chunks, b"more"), create_only=True)
    assert [one.key for one in await store.list("")] == ["big"], "nothing staged is left"
    assert (await store.head("big")).size == 9 * MIB  # type: ignore[union-attr]


@pytest.mark.parametrize("sent", [1, 9], ids=["a little was sent", "parts were sent"])
@pytest.mark.parametrize("error", [RuntimeError("bang"), OSError("hung up")], ids=repr)
async def test_a_broken_stream_leaves_the_old_object(
    store: ObjectStore, sent: int, error: Exception
) -> None:
    async def broken() -> AsyncIterator[bytes]:
        for _ in range(sent):
            yield b"x" * MIB
        raise error

    await store.put("a/b", b"old")
    with pytest.raises(type(error), match=str(error)):
        await store.put("a/b", broken())
    assert await store.get("a/b") == b"old"
    assert [one.key for one in await store.list("")] == ["a/b"]


async def test_empty_streams_and_empty_chunks_are_fine(store: ObjectStore) -> None:
    assert (await store.put("none", pieces())).size == 0
    assert (await store.put("some", pieces(b"", b"a", b"", b"b"))).size == 2
    assert await store.get("none") == b""
    assert await store.get("some") == b"ab"


@pytest.mark.parametrize("key", ODD_KEYS)
async def test_odd_keys_are_kept_as_they_are(store: ObjectStore, key: str) -> None:
    await store.put(key, b"here")
    assert await store.get(key) == b"here"
    assert [one.key for one in await store.list("")] == [key]
    await store.delete(key)
    assert await store.list("") == []


@pytest.mark.parametrize("key", ["", "/a", "a/", "a//b", "../x", "a/../b", "a\0b", "a\\b", "a#1"])
async def test_a_bad_key_reaches_no_backend(store: ObjectStore, key: str) -> None:
    for refused in (
        store.put(key, b"x"),
        store.get(key),
        store.head(key),
        store.delete(key),
        store.open(key),
    ):
        with pytest.raises(Invalid):
            await refused


async def test_pages_are_in_key_order_and_complete(store: ObjectStore) -> None:
    keys = [
        "t/a",
        "t/a-b",
        "t/a.b",
        "t/b/1",
        "t/b/c/1",
        "t/b/c/2",
        "t/b/c-1",
        "t/b0",
        "t/ü",
        "t2/x",
    ]
    for key in keys:
        await store.put(key, b"x")
    expected = sorted(key for key in keys if key.startswith("t/"))
    for limit in (1, 2, 3, 100):
        seen: list[str] = []
        after: str | None = None
        while page := await store.list("t/", after=after, limit=limit):
            assert len(page) <= limit
            seen += [one.key for one in page]
            after = page[-1].key
        assert seen == expected
    assert [one.key for one in await store.list("t/b/", after="t/b/c-1")] == [
        "t/b/c/1",
        "t/b/c/2",
    ]
    assert await store.list("nowhere/") == []
    assert await store.list("t/", limit=0) == []
    assert len(await store.list("")) == len(keys)


async def test_a_prefix_is_a_whole_folder(store: ObjectStore) -> None:
    with pytest.raises(Invalid, match="end with"):
        await store.list("t")


async def test_the_probe_leaves_nothing(store: ObjectStore) -> None:
    await store.probe()
    assert await store.list("") == []


async def test_an_open_object_says_its_whole_size(store: ObjectStore) -> None:
    await store.put("a/b", b"0123456789")
    opened = await store.open("a/b", start=4, length=3)
    assert opened.stored.size == 10
    assert b"".join([chunk async for chunk in opened.body]) == b"456"
    beyond = await store.open("a/b", start=99)
    assert beyond.stored.size == 10
    assert [chunk async for chunk in beyond.body] == []


async def test_negative_ranges_are_a_mistake_of_the_caller(store: ObjectStore) -> None:
    with pytest.raises(ValueError, match="from 0 up"):
        await store.get("a/b", start=-1)


async def test_a_file_in_the_way_of_a_folder_is_a_conflict(tmp_path: Path) -> None:
    store = open_store(ObjectsConfig(url=str(tmp_path)))
    await store.put("a/b", b"x")
    for key in ("a/b/c", "a"):
        with pytest.raises(Conflict) as refused:
            await store.put(key, b"y")
        assert refused.value.code == "key_in_the_way"


async def test_writes_in_progress_are_not_listed(tmp_path: Path) -> None:
    store = open_store(ObjectsConfig(url=str(tmp_path)))
    seen: list[list[str]] = []

    async def slow() -> AsyncIterator[bytes]:
        for _ in range(40):
            yield b"x" * MIB
        seen.append([path.name for path in tmp_path.iterdir()])
        seen.append([one.key for one in await store.list("")])

    await store.put("big", slow())
    assert seen == [["big#1"], []]


async def test_local_objects_are_for_the_servers_user_alone(tmp_path: Path) -> None:
    store = open_store(ObjectsConfig(url=f"file://{tmp_path}/new/deep"))
    assert store.backend is Backend.LOCAL
    assert (tmp_path / "new/deep").stat().st_mode & 0o777 == 0o700


async def test_no_error_of_s3_holds_a_secret(s3_server: servers.Server) -> None:
    store = open_store(s3_server.config("s3://no-such-bucket-here"))
    for failing in (store.put("a/b", b"x"), store.get("a/b"), store.list(""), store.probe()):
        with pytest.raises(Fault) as failed:
            await failing
        fault = failed.value
        assert "bucket does not exist" in str(fault)
        assert "doctor --fix" in fault.hint
        assert "NoSuchBucket" in fault.detail["cause"]
        for text in (str(fault), fault.hint, repr(fault.detail), repr(store.__dict__)):
            assert servers.SECRET_KEY not in text
            assert servers.ACCESS_KEY not in text


async def test_wrong_credentials_are_named(versitygw_server: servers.Server) -> None:
    store = open_store(versitygw_server.config("s3://any", secret_key="wrong-secret-value"))
    with pytest.raises(Fault, match="does not accept our credentials") as failed:
        await store.put("a/b", b"x")
    assert "wrong-secret-value" not in repr(failed.value.detail)


async def test_the_probe_says_which_step_failed() -> None:
    port = servers.free_port()
    config = ObjectsConfig(
        url="s3://b",
        endpoint=f"http://127.0.0.1:{port}",
        allow_http=True,
        access_key="a-key",
        secret_key="a-secret",
    )
    with pytest.raises(Fault, match=r"at the step 'write'.*cannot be reached") as failed:
        await open_store(config).probe()
    assert failed.value.detail["step"] == "write"
    assert "endpoint" in failed.value.hint
