"""Puts a backup into an installation that holds nothing yet."""

from __future__ import annotations

from pathlib import Path

from verderer.cli.assembly import database_url, objects_config, open_context
from verderer.cli.backup.manifest import DUMP, OBJECTS, Manifest, read_listing, read_manifest
from verderer.core.errors import Conflict, Invalid
from verderer.objects.config import ObjectsConfig
from verderer.objects.copying import copy, pages, verify
from verderer.objects.store import ObjectStore, open_store
from verderer.settings import Settings
from verderer.store import dumping
from verderer.store.migrate import migrate
from verderer.usecases.restored import give_up_attempts, note_restored

_SHOWN = 3


async def check_backup(folder: Path) -> Manifest:
    """Read all of it and compare it with what was written.

    Raises:
        Invalid: it is no backup, damaged, or of a newer release.
    """
    manifest = read_manifest(folder)
    if newer := sorted(set(manifest.migrations) - dumping.known_migrations()):
        message = f"the backup has migration {newer[-1]}, which this release lacks"
        hint = f"Restore it with release {manifest.release} or a newer one."
        raise Invalid(message, hint=hint, code="backup")
    if manifest.copied:
        await _verify(folder, _inside(folder))
    return manifest


async def restore(settings: Settings, folder: Path, *, whole_machine: bool) -> Manifest:
    """Put everything back and bring it to this release's schema.

    Objects come first and the database last, in one transaction: what was broken off is simply
    done again. Of a `whole_machine` the local cluster's own memory is gone too, so what it ran
    is given up.

    Raises:
        Invalid: as `check_backup`, or the store lacks objects that were only listed.
        Conflict: the database or the store holds something else.
    """
    manifest = await check_backup(folder)
    dsn, store = database_url(settings), open_store(objects_config(settings))
    if not await dumping.is_empty(dsn):
        hint = "Name a new database or data folder; nothing is ever restored over something."
        raise Conflict("the database is not empty", hint=hint, code="not_empty")
    if manifest.copied:
        await _refuse_others(folder, store)
        for known in read_listing(folder):
            await copy(_inside(folder), store, [one.key for one in known])
    await _verify(folder, store)
    major = max(manifest.postgres, await dumping.server_major(dsn))
    program = dumping.find_program("pg_restore", major, settings.postgres.bin, dsn=dsn)
    await dumping.load(dsn, folder / DUMP, program=program)
    await migrate(dsn)
    async with open_context(settings, role="restore") as ctx:
        detail = {"made_at": manifest.made_at, "objects": manifest.objects}
        await note_restored(ctx, detail)
        if whole_machine and settings.agent.kind == "local":
            await give_up_attempts(ctx, settings.agent.cluster)
    return manifest


def _inside(folder: Path) -> ObjectStore:
    return open_store(ObjectsConfig(url=str(folder / OBJECTS)))


async def _verify(folder: Path, store: ObjectStore) -> None:
    wrong: list[str] = []
    for known in read_listing(folder):
        wrong += await verify(store, known)
    if wrong:
        named = ", ".join(wrong[:_SHOWN])
        raise Invalid(
            f"{len(wrong)} objects are missing or not what was written: {named}",
            hint="Take another backup, or bring the objects back first.",
            code="backup",
        )


async def _refuse_others(folder: Path, store: ObjectStore) -> None:
    """An earlier restore that was broken off may have left some of ours."""
    ours = {one.key for known in read_listing(folder) for one in known}
    async for page in pages(store):
        if stray := [one.key for one in page if one.key not in ours]:
            hint = "Name an empty bucket, prefix or folder in objects.url."
            message = f"the object store is not empty: it holds {stray[0]}"
            raise Conflict(message, hint=hint, code="not_empty")
