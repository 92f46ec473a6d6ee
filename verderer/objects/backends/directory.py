"""Lists a local directory in key order, which is the order that S3 lists a bucket in.

The backend's own listing of a directory has no order, so a page of it would need the whole; this
walk reads only the folders that can hold the page.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import islice
from pathlib import Path

from verderer.objects.keys import PARTIAL_NAME


@dataclass(frozen=True, slots=True, kw_only=True)
class FileEntry:
    """One file as the walk saw it."""

    key: str
    size: int
    etag: str
    modified: datetime
    partial: bool
    """A write in progress, or one that was interrupted: never an object."""


def page(
    root: Path, prefix: str, *, after: str, limit: int, partial: bool = False
) -> list[FileEntry]:
    """At most `limit` files whose key starts with `prefix` and is greater than `after`, in order.

    `prefix` is empty or ends in `/`. Files that vanish while they are read are left out. With
    `partial`, unfinished writes are listed instead of objects.
    """
    entries = (one for one in _walk(root, prefix, after) if one.partial == partial)
    return list(islice(entries, limit))


def _walk(root: Path, prefix: str, after: str) -> Iterator[FileEntry]:
    """Depth first; a folder sorts as its name with `/`, so that keys come out in string order."""
    folders = [_listed(root, prefix)]
    while folders:
        entry = next(folders[-1], None)
        if entry is None:
            folders.pop()
        elif isinstance(entry, str):
            # Everything inside is at or before `after`, unless `after` itself lies inside.
            if entry > after or after.startswith(entry):
                folders.append(_listed(root, entry))
        elif entry.key > after:
            yield entry


def _listed(root: Path, folder: str) -> Iterator[FileEntry | str]:
    try:
        with os.scandir(root / folder) as found:
            named = [
                (folder + one.name + ("/" if one.is_dir(follow_symlinks=False) else ""), one)
                for one in found
            ]
    except (FileNotFoundError, NotADirectoryError):
        return
    named.sort(key=lambda pair: pair[0])
    for key, one in named:
        if not _is_text(one.name):
            continue  # nothing that we wrote
        if key.endswith("/"):
            yield key
        elif (entry := _entry(key, one)) is not None:
            yield entry


def _entry(key: str, one: os.DirEntry[str]) -> FileEntry | None:
    try:
        if not one.is_file(follow_symlinks=False):
            return None
        stat = one.stat(follow_symlinks=False)
    except FileNotFoundError:
        return None
    # The same tag as the backend gives for a single file (the contract tests compare them).
    etag = f'"{stat.st_ino:x}-{stat.st_mtime_ns // 1000:x}-{stat.st_size:x}"'
    return FileEntry(
        key=key,
        size=stat.st_size,
        etag=etag,
        modified=datetime.fromtimestamp(stat.st_mtime, UTC),
        partial=PARTIAL_NAME.search(one.name) is not None,
    )


def _is_text(name: str) -> bool:
    try:
        name.encode()
    except UnicodeEncodeError:
        return False
    return True
