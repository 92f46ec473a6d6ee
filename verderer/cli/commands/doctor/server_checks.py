"""What only somebody on the server's machine can find out: database, object store, disk."""

from __future__ import annotations

import shutil

from verderer.cli.assembly import objects_config
from verderer.cli.commands.doctor.database_checks import look_at_database
from verderer.cli.commands.doctor.findings import Finding, fail, ok, warn
from verderer.cli.screen.words import size
from verderer.core.errors import Fault, VerdererError
from verderer.objects.bucket import BucketAdmin, State
from verderer.objects.store import open_store
from verderer.settings import Settings

_LITTLE = 2 * 2**30


async def look_at_machine(settings: Settings, *, fix: bool) -> list[Finding]:
    """Database, object store and disk; with `fix` the database and the bucket are mended."""
    found = await look_at_database(settings, fix=fix)
    found += await _objects(settings, fix=fix)
    if settings.data_dir.exists():
        found.append(_disk(settings))
    return found


async def _objects(settings: Settings, *, fix: bool) -> list[Finding]:
    try:
        config = objects_config(settings)
        admin = BucketAdmin(config)
        found = await _bucket(admin, fix=fix)
        await open_store(config).probe()
    except VerdererError as e:
        step = e.detail.get("step", "") if isinstance(e, Fault) else ""
        detail = f"{step} failed: {e.message}" if step else e.message
        return [fail("object store", detail, e.hint or "See [objects] in the settings.")]
    return [ok("object store", f"{settings.objects_url}: writes, reads and deletes"), *found]


async def _bucket(admin: BucketAdmin, *, fix: bool) -> list[Finding]:
    state = await admin.exists()
    if state is State.NOT_APPLICABLE:
        return []
    if state is State.OFF:
        if not fix:
            raise Fault("the bucket does not exist", hint="verderer doctor --fix makes it")
        await admin.create()
    return [await _versioning(admin, fix=fix), await _expiry(admin, fix=fix)]


async def _versioning(admin: BucketAdmin, *, fix: bool) -> Finding:
    what = "bucket versioning"
    try:
        state = await admin.versioning()
        if state is State.OFF and fix:
            state = await admin.set_versioning(True)
    except Fault as e:
        return warn(what, e.message, e.hint)
    if state is State.ON:
        return ok(what, "on: what is overwritten or deleted can be brought back")
    if state is State.NOT_SUPPORTED:
        return warn(what, "the store keeps no versions", "Back it up by other means.")
    remedy = "verderer doctor --fix turns it on; old versions take room until a rule ends them."
    return warn(what, "off: what is overwritten or deleted is gone", remedy)


async def _expiry(admin: BucketAdmin, *, fix: bool) -> Finding:
    what = "bucket lifecycle"
    try:
        state = await admin.tmp_expiry()
        if state is State.OFF and fix:
            state = await admin.set_tmp_expiry()
            if state is State.ON:
                return ok(what, "tmp/ now expires, and half-done uploads are given up")
    except Fault as e:
        return warn(what, e.message, e.hint)
    if state is State.ON:
        return ok(what, "tmp/ expires")
    if state is State.NOT_SUPPORTED:
        return ok(what, "the store knows none; our own collector removes tmp/")
    remedy = "verderer doctor --fix adds the rule."
    return warn(what, "tmp/ does not expire by itself", remedy)


def _disk(settings: Settings) -> Finding:
    free = shutil.disk_usage(settings.data_dir).free
    detail = f"{size(free)} free at {settings.data_dir}"
    if free < _LITTLE:
        return warn("disk", detail, "Make room: logs and the database stop when it is full.")
    return ok("disk", detail)
