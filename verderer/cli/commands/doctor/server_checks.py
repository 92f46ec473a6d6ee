"""What only somebody on the server's machine can find out: database, object store, disk."""

from __future__ import annotations

import shutil
from dataclasses import replace

from verderer.cli.assembly import objects_config
from verderer.cli.commands.doctor.findings import Finding, fail, ok, warn
from verderer.cli.screen.words import size
from verderer.core.errors import Fault, VerdererError
from verderer.objects.bucket import BucketAdmin, State
from verderer.objects.store import open_store
from verderer.settings import Secret, Settings
from verderer.store.embedded.launcher import dsn_at
from verderer.usecases.examine import DatabaseFacts, examine_database

_OLDEST = 150_000
_LITTLE = 2 * 2**30


async def look_at_machine(settings: Settings, *, fix: bool) -> list[Finding]:
    """Database, object store and disk; with `fix` the bucket is mended."""
    found = await _database(settings)
    found += await _objects(settings, fix=fix)
    if settings.data_dir.exists():
        found.append(_disk(settings))
    return found


async def _database(settings: Settings) -> list[Finding]:
    embedded = settings.database.url is None
    if embedded:
        address = Secret(dsn_at(settings.postgres_dir))
        settings = replace(settings, database=replace(settings.database, url=address))
    assert settings.database.url is not None  # noqa: S101
    try:
        facts = await examine_database(settings.database.url.reveal())
    except Fault as e:
        remedy = "`verderer up` starts the embedded one." if embedded else e.hint
        return [fail("database", e.message, remedy)]
    return [
        _version(facts),
        _connections(facts, settings),
        _statements(facts),
        _schema(facts),
        _scheduler(facts),
    ]


def _version(facts: DatabaseFacts) -> Finding:
    if facts.version < _OLDEST:
        return fail("PostgreSQL", f"version {facts.version_text}", "15 or later is needed.")
    return ok("PostgreSQL", f"version {facts.version_text}")


def _connections(facts: DatabaseFacts, settings: Settings) -> Finding:
    # Each role has a pool and two connections for wakeups; server workers and two schedulers.
    wanted = (settings.server.workers + 2) * (settings.database.pool_size + 2)
    detail = f"{facts.connections} of {facts.max_connections} in use, up to {wanted} wanted"
    if wanted > facts.max_connections - 5:
        remedy = "Raise max_connections, or lower database.pool_size."
        return warn("connections", detail, remedy)
    return ok("connections", detail)


def _statements(facts: DatabaseFacts) -> Finding:
    if facts.statements:
        return ok("pg_stat_statements", "on")
    remedy = "Add it to shared_preload_libraries and CREATE EXTENSION pg_stat_statements."
    return warn("pg_stat_statements", "off: slow statements cannot be found", remedy)


def _schema(facts: DatabaseFacts) -> Finding:
    if facts.missing:
        detail = f"lacks {len(facts.missing)} migrations, {facts.missing[0]} first"
        return fail("schema", detail, "verderer migrate")
    return ok("schema", "of this release")


def _scheduler(facts: DatabaseFacts) -> Finding:
    gone = facts.scheduler_gone_s
    if gone is not None and gone <= 0:
        return ok("scheduler", "one leads")
    since = f"none has led for {gone:.0f} s" if gone is not None else "none has ever led"
    return fail("scheduler", since, "verderer scheduler")


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
    return [await _expiry(admin, fix=fix)]


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
