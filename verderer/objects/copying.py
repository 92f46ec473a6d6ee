"""Carries objects from one store to another and knows them again by their SHA-256."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Sequence
from typing import TypeVar

import msgspec

from verderer.core.errors import NotFound
from verderer.objects.keys import TMP_PREFIX
from verderer.objects.store import ObjectStore, Stored

_PAGE = 1000
_AT_ONCE = 16

_I = TypeVar("_I")
_O = TypeVar("_O")


class Known(msgspec.Struct, frozen=True):
    """One object as a backup lists it."""

    key: str
    size: int
    """Bytes."""
    sha256: str = ""
    """Hexadecimal; empty for an object that was listed and not read."""


async def pages(store: ObjectStore) -> AsyncIterator[Sequence[Stored]]:
    """Everything that is kept for good, in key order."""
    after = ""
    while page := await store.list("", after=after, limit=_PAGE):
        yield [one for one in page if not one.key.startswith(TMP_PREFIX)]
        if len(page) < _PAGE:
            return
        after = page[-1].key


async def copy(source: ObjectStore, target: ObjectStore, keys: Iterable[str]) -> list[Known]:
    """Copy some objects, several at a time; what was deleted meanwhile is left out."""
    found = await _each(keys, lambda key: _copy_one(source, target, key))
    return [one for one in found if one is not None]


async def verify(store: ObjectStore, known: Sequence[Known]) -> list[str]:
    """Keys of the objects that are not there as they are known, in order."""
    wrong = await _each(known, lambda one: _differs(store, one))
    return [one.key for one, differs in zip(known, wrong, strict=True) if differs]


async def _copy_one(source: ObjectStore, target: ObjectStore, key: str) -> Known | None:
    try:
        opened = await source.open(key)
    except NotFound:
        return None
    seen = _Seen(opened.body)
    await target.put(key, seen.through(), size=opened.stored.size)
    return Known(key, seen.size, seen.digest.hexdigest())


async def _differs(store: ObjectStore, known: Known) -> bool:
    try:
        if not known.sha256:
            stored = await store.head(known.key)
            return stored is None or stored.size != known.size
        seen = _Seen((await store.open(known.key)).body)
    except NotFound:
        return True
    async for _ in seen.through():
        pass
    return (seen.size, seen.digest.hexdigest()) != (known.size, known.sha256)


class _Seen:
    """What has passed."""

    def __init__(self, body: AsyncIterator[bytes]) -> None:
        self._body = body
        self.size = 0
        self.digest = hashlib.sha256()

    async def through(self) -> AsyncIterator[bytes]:
        async for chunk in self._body:
            self.size += len(chunk)
            self.digest.update(chunk)
            yield chunk


async def _each(items: Iterable[_I], work: Callable[[_I], Awaitable[_O]]) -> list[_O]:
    """Do the work for all of them, some at a time, and keep their order."""
    turn = asyncio.Semaphore(_AT_ONCE)

    async def one(item: _I) -> _O:
        async with turn:
            return await work(item)

    return list(await asyncio.gather(*(one(item) for item in items)))
