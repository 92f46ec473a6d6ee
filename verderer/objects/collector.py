"""Removes what nobody will come back for: old objects under `tmp/`, and interrupted writes.

It runs on every backend; the rule in an S3 bucket is only a second guard. A pass looks at a bounded
number of objects and says where the next one goes on.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path

from verderer.core.errors import Fault
from verderer.objects.backends import directory
from verderer.objects.keys import TMP_PREFIX
from verderer.objects.store import ObjectStore, Stored

TMP_LIFE = timedelta(days=7)
PASS_LIMIT = 1000
_AT_ONCE = 16


@dataclass(frozen=True, slots=True)
class Collected:
    """What one pass did."""

    examined: int
    deleted: int
    deleted_bytes: int
    failed: int
    """Objects that could not be deleted; the next round meets them again."""
    next_after: str | None
    """Give it to the next pass; None when this one reached the end."""


async def collect_tmp(
    store: ObjectStore,
    *,
    now: datetime,
    after: str | None = None,
    older_than: timedelta = TMP_LIFE,
    limit: int = PASS_LIMIT,
) -> Collected:
    """Delete objects under `tmp/` that were written more than `older_than` ago.

    `now` is UTC and aware. Looks at no more than `limit` objects, in key order after `after`.

    Raises:
        Fault: the store cannot be listed.
    """
    page = await store.list(TMP_PREFIX, after=after, limit=limit)
    old = [one for one in page if one.modified is not None and one.modified < now - older_than]
    failed = await _delete(store, old)
    return Collected(
        examined=len(page),
        deleted=len(old) - len(failed),
        deleted_bytes=sum(one.size for one in old if one.key not in failed),
        failed=len(failed),
        next_after=page[-1].key if page and len(page) == limit else None,
    )


async def collect_interrupted(
    store: ObjectStore,
    *,
    now: datetime,
    after: str | None = None,
    older_than: timedelta = TMP_LIFE,
    limit: int = PASS_LIMIT,
) -> Collected:
    """Delete what writes that were cut short by a crash left in a local directory.

    Other backends keep no such files where we could see them: nothing is done there.
    """
    root = store.root
    if root is None:
        return Collected(0, 0, 0, 0, None)
    page = await asyncio.to_thread(
        directory.page, root, "", after=after or "", limit=limit, partial=True
    )
    old = [one for one in page if one.modified < now - older_than]
    removed = await asyncio.to_thread(_unlink, root, old)
    return Collected(
        examined=len(page),
        deleted=len(removed),
        deleted_bytes=sum(one.size for one in removed),
        failed=len(old) - len(removed),
        next_after=page[-1].key if page and len(page) == limit else None,
    )


def _unlink(root: Path, files: Sequence[directory.FileEntry]) -> list[directory.FileEntry]:
    removed = []
    for one in files:
        with suppress(OSError):
            (root / one.key).unlink(missing_ok=True)
            removed.append(one)
    return removed


async def _delete(store: ObjectStore, objects: Sequence[Stored]) -> set[str]:
    """Delete them, a few at a time; the keys of those that could not be."""
    failed = {one.key for one in objects}
    gate = asyncio.Semaphore(_AT_ONCE)

    async def delete(key: str) -> None:
        async with gate:
            with suppress(Fault):
                await store.delete(key)
                failed.discard(key)

    await asyncio.gather(*(delete(one.key) for one in objects))
    return failed
