"""Folders out of an object store, which knows only keys."""

from __future__ import annotations

from dataclasses import dataclass

from verderer.objects.keys import plain_name
from verderer.objects.store import ObjectStore

_PAGE = 1_000
_LAST = "\U0010ffff"
"""Sorts after every name: to step over the rest of a folder."""
MAX_ENTRIES = 100_000
"""Of one folder's listing; nobody reads further."""


@dataclass(frozen=True, slots=True)
class Listed:
    """A file, or a folder when it has no size."""

    name: str
    size: int | None


async def list_folder(objects: ObjectStore, prefix: str) -> list[Listed]:
    """What lies directly under `prefix`, which ends in `/`, by name."""
    found: dict[str, Listed] = {}
    after: str | None = None
    while len(found) < MAX_ENTRIES:
        page = await objects.list(prefix, after=after, limit=_PAGE)
        for stored in page:
            head, slash, _ = stored.key[len(prefix) :].partition("/")
            found.setdefault(head, Listed(plain_name(head), None if slash else stored.size))
        if len(page) < _PAGE:
            break
        head, slash, _ = page[-1].key[len(prefix) :].partition("/")
        after = f"{prefix}{head}/{_LAST}" if slash else page[-1].key
    return sorted(found.values(), key=lambda one: one.name)


async def delete_folder(objects: ObjectStore, prefix: str) -> int:
    """Delete everything under `prefix`; return how many objects that were."""
    removed = 0
    while page := await objects.list(prefix, limit=_PAGE):
        for stored in page:
            await objects.delete(stored.key)
        removed += len(page)
    return removed
