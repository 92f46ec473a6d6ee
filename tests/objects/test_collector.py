"""The collector: old temporary objects go, everything else stays."""

from __future__ import annotations

import os
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from verderer.core.errors import Fault
from verderer.objects.collector import collect_interrupted, collect_tmp
from verderer.objects.config import ObjectsConfig
from verderer.objects.store import ObjectStore, open_store

LATER = timedelta(days=8)


async def test_old_temporary_objects_go_and_others_stay(store: ObjectStore) -> None:
    for key in ("tmp/a", "tmp/b/c", "logs/a", "tmpx/a"):
        await store.put(key, b"12345")
    now = datetime.now(UTC)
    fresh = await collect_tmp(store, now=now + timedelta(days=6))
    assert (fresh.examined, fresh.deleted) == (2, 0)
    done = await collect_tmp(store, now=now + LATER)
    assert (done.examined, done.deleted, done.deleted_bytes, done.next_after) == (2, 2, 10, None)
    assert [one.key for one in await store.list("")] == ["logs/a", "tmpx/a"]


async def test_a_pass_is_bounded_and_the_next_goes_on(store: ObjectStore) -> None:
    for n in range(7):
        await store.put(f"tmp/{n}", b"x")
    now = datetime.now(UTC)
    seen, after = [], None
    while True:
        done = await collect_tmp(store, now=now, after=after, limit=3)
        seen.append(done.examined)
        after = done.next_after
        if after is None:
            break
    assert seen == [3, 3, 1], "fresh objects are passed by, not met again and again"
    swept = 0
    while (done := await collect_tmp(store, now=now + LATER, limit=3)).deleted:
        swept += done.deleted
    assert swept == 7


async def test_what_cannot_be_deleted_is_counted_and_left(monkeypatch: pytest.MonkeyPatch) -> None:
    store = open_store(ObjectsConfig(url="memory://"))
    for key in ("tmp/a", "tmp/b"):
        await store.put(key, b"x")
    working = store.delete

    async def stubborn(key: str) -> None:
        if key == "tmp/a":
            raise Fault("no")
        await working(key)

    monkeypatch.setattr(store, "delete", stubborn)
    done = await collect_tmp(store, now=datetime.now(UTC) + LATER)
    assert (done.deleted, done.failed, done.deleted_bytes) == (1, 1, 1)


async def test_interrupted_writes_go_when_they_are_old(tmp_path: Path) -> None:
    store = open_store(ObjectsConfig(url=str(tmp_path)))
    await store.put("logs/a", b"kept")
    (tmp_path / "logs/b#1").write_bytes(b"123")
    (tmp_path / "c#2").write_bytes(b"1234")
    os.utime(tmp_path / "c#2", (0, 0))
    done = await collect_interrupted(store, now=datetime.now(UTC))
    assert (done.examined, done.deleted, done.deleted_bytes) == (2, 1, 4)
    assert sorted(path.name for path in (tmp_path / "logs").iterdir()) == ["a", "b#1"]


async def test_a_memory_store_has_no_interrupted_writes() -> None:
    store = open_store(ObjectsConfig(url="memory://"))
    assert (await collect_interrupted(store, now=datetime.now(UTC))).examined == 0
