"""Makes a backup, while everything goes on."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import BinaryIO

import msgspec

from verderer.cli.assembly import database_url, objects_config
from verderer.cli.backup.manifest import (
    DUMP,
    FORMAT,
    LISTING,
    OBJECTS,
    Manifest,
    part_of,
    write_manifest,
)
from verderer.core.errors import Conflict
from verderer.core.version import VERSION
from verderer.objects.config import ObjectsConfig
from verderer.objects.copying import Known, copy, pages
from verderer.objects.store import ObjectStore, open_store
from verderer.settings import Settings
from verderer.store import dumping


async def make_backup(settings: Settings, folder: Path, *, copied: bool) -> Manifest:
    """Write database, objects (or their listing alone) and manifest into an empty folder.

    The database comes first: whatever it knows of is in the store by then, and only more comes.

    Raises:
        Conflict: the folder holds something.
        Fault: the database, the store or the disk does not work.
    """
    _make_empty(folder)
    dsn = database_url(settings)
    migrations = await dumping.applied(dsn)
    major = await dumping.server_major(dsn)
    program = dumping.find_program("pg_dump", major, settings.postgres.bin, dsn=dsn)
    await dumping.dump(dsn, folder / DUMP, program=program)
    (folder / DUMP).chmod(0o600)
    store = open_store(objects_config(settings))
    target = open_store(ObjectsConfig(url=str(folder / OBJECTS))) if copied else None
    with (folder / LISTING).open("wb") as listing:
        count, size = await _take_objects(store, target, listing)
    manifest = Manifest(
        format=FORMAT,
        made_at=datetime.now(UTC).isoformat(timespec="seconds"),
        release=VERSION,
        postgres=major,
        migrations=migrations,
        database=part_of(folder / DUMP),
        listing=part_of(folder / LISTING),
        objects=count,
        bytes=size,
        copied=copied,
    )
    write_manifest(folder, manifest)
    return manifest


async def _take_objects(
    store: ObjectStore, target: ObjectStore | None, listing: BinaryIO
) -> tuple[int, int]:
    count = size = 0
    async for page in pages(store):
        if target is None:
            known = [Known(one.key, one.size) for one in page]
        else:
            known = await copy(store, target, [one.key for one in page])
        listing.writelines(msgspec.json.encode(one) + b"\n" for one in known)
        count += len(known)
        size += sum(one.size for one in known)
    return count, size


def _make_empty(folder: Path) -> None:
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        if any(folder.iterdir()):
            raise Conflict(f"{folder} is not empty", hint="Name a new folder.", code="backup")
    except OSError as e:
        why = e.strerror or str(e)
        hint = "Name a folder that can be made."
        raise Conflict(f"{folder} cannot be used: {why}", hint=hint, code="backup") from e
