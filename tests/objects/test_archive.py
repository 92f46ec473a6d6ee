"""A folder as one ZIP, on every backend."""

from __future__ import annotations

import io
import os
import tracemalloc
import zipfile
from pathlib import Path

import pytest

from verderer.core.errors import NotFound
from verderer.objects import archive
from verderer.objects.archive import zip_of
from verderer.objects.config import ObjectsConfig
from verderer.objects.store import ObjectStore, open_store

FOLDER = "artifacts/one/"


async def whole(store: ObjectStore) -> zipfile.ZipFile:
    return zipfile.ZipFile(io.BytesIO(b"".join([part async for part in zip_of(store, FOLDER)])))


async def test_every_file_is_in_it_under_its_own_name(
    store: ObjectStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(archive, "_PAGE", 2)
    files = {f"deep/{n}/ä {n}.txt": os.urandom(n * 100_000) for n in range(5)}
    for name, content in files.items():
        await store.put(FOLDER + name, content)
    await store.put("artifacts/two/other", b"of somebody else")
    found = await whole(store)
    assert found.testzip() is None
    assert {name: found.read(name) for name in found.namelist()} == files


async def test_nothing_is_an_empty_archive(store: ObjectStore) -> None:
    assert (await whole(store)).namelist() == []


async def test_large_files_are_never_whole_in_memory(tmp_path: Path) -> None:
    store = open_store(ObjectsConfig(url=str(tmp_path)))
    await store.put(FOLDER + "large", bytes(64 << 20))
    tracemalloc.start()
    size = 0
    async for part in zip_of(store, FOLDER):
        size += len(part)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert size > 64 << 20
    assert peak < 16 << 20


async def test_a_file_that_goes_away_breaks_it_off(
    store: ObjectStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    await store.put(FOLDER + "a", b"there")
    await store.put(FOLDER + "b", b"gone")
    parts = zip_of(store, FOLDER)

    async def gone(key: str) -> None:
        raise NotFound(key)
        yield b""

    monkeypatch.setattr(store, "stream", gone)
    with pytest.raises(NotFound):
        [part async for part in parts]
