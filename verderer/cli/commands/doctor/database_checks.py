"""How PostgreSQL stands, as somebody who may log in to it sees it."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from verderer.cli.commands.doctor.findings import Finding, fail, ok, warn
from verderer.core.errors import VerdererError
from verderer.settings import Secret, Settings
from verderer.store.connecting import OLDEST
from verderer.store.embedded.launcher import dsn_at
from verderer.usecases.examine import SLOW_MS, DatabaseFacts, examine_database

_CLOCKS_APART_S: Final = 2.0
_LONG_S: Final = 300.0
_SHOWN: Final = 60
"""Characters of a slow statement."""


async def look_at_database(settings: Settings, *, fix: bool) -> list[Finding]:
    """Everything about it; with `fix` the extension that counts statements is made."""
    embedded = settings.database.url is None
    if embedded:
        address = Secret(dsn_at(settings.postgres_dir))
        settings = replace(settings, database=replace(settings.database, url=address))
    assert settings.database.url is not None  # noqa: S101
    try:
        facts = await examine_database(settings.database.url.reveal(), fix=fix)
    except VerdererError as e:
        remedy = "`verderer up` starts the embedded one." if embedded else e.hint
        return [fail("database", e.message, remedy)]
    return [
        _version(facts),
        _durable(facts),
        _connections(facts, settings),
        _clock(facts),
        _statements(facts),
        *_slow(facts),
        _transactions(facts),
        _cron(facts),
        _schema(facts),
        _scheduler(facts),
    ]


def _version(facts: DatabaseFacts) -> Finding:
    if facts.server.version < OLDEST:
        return fail("PostgreSQL", f"version {facts.server.version_text}", "15 or later is needed.")
    return ok("PostgreSQL", f"version {facts.server.version_text}")


def _durable(facts: DatabaseFacts) -> Finding:
    what = "durability"
    if facts.server.durable:
        return ok(what, "a commit survives a power cut")
    remedy = "Set fsync, full_page_writes and synchronous_commit to on."
    return fail(what, "what was accepted can be lost in a power cut", remedy)


def _connections(facts: DatabaseFacts, settings: Settings) -> Finding:
    # Each role has a pool and two connections for wakeups; server workers and two schedulers.
    wanted = (settings.server.workers + 2) * (settings.database.pool_size + 2)
    server = facts.server
    detail = f"{server.connections} of {server.max_connections} in use, up to {wanted} wanted"
    if wanted > server.max_connections - 5:
        remedy = "Raise max_connections, or lower database.pool_size."
        return warn("connections", detail, remedy)
    return ok("connections", detail)


def _clock(facts: DatabaseFacts) -> Finding:
    what = "database clock"
    if abs(facts.ahead_s) < _CLOCKS_APART_S:
        return ok(what, "agrees with this machine's")
    where = "ahead of" if facts.ahead_s > 0 else "behind"
    remedy = "Run NTP on both machines: tokens and grants expire by the clock."
    return warn(what, f"{abs(facts.ahead_s):.0f} s {where} this machine's", remedy)


def _statements(facts: DatabaseFacts) -> Finding:
    what = "pg_stat_statements"
    if facts.server.statements and facts.slow is not None:
        return ok(what, "on")
    if facts.server.statements:
        remedy = "Add it to shared_preload_libraries, and GRANT pg_read_all_stats to our role."
        return warn(what, "there, but cannot be read", remedy)
    remedy = "Add it to shared_preload_libraries; verderer doctor --fix creates the extension."
    return warn(what, "off: slow statements cannot be found", remedy)


def _slow(facts: DatabaseFacts) -> list[Finding]:
    what = "slow statements"
    if facts.slow is None:
        return []
    if not facts.slow:
        return [ok(what, f"none takes {SLOW_MS:.0f} ms on average")]
    remedy = "ANALYZE the tables first; if it stays, report it with the statement."
    shown = [f"{one.mean_ms:.0f} ms × {one.calls}: {_short(one.query)}" for one in facts.slow]
    return [warn(what, line, remedy) for line in shown]


def _short(query: str) -> str:
    text = " ".join(query.split())
    return text if len(text) <= _SHOWN else f"{text[: _SHOWN - 1]}…"


def _transactions(facts: DatabaseFacts) -> Finding:
    what = "transactions"
    if facts.oldest_transaction_s < _LONG_S:
        return ok(what, "none is held open")
    detail = f"one has been open for {facts.oldest_transaction_s / 60:.0f} min"
    remedy = "End it: dead rows pile up behind it. See pg_stat_activity.xact_start."
    return warn(what, detail, remedy)


def _cron(facts: DatabaseFacts) -> Finding:
    there = facts.server.cron
    return ok("pg_cron", "there" if there else "not there, and not needed: the scheduler tidies up")


def _schema(facts: DatabaseFacts) -> Finding:
    if facts.missing:
        detail = f"lacks {len(facts.missing)} migrations, {facts.missing[0]} first"
        return fail("schema", detail, "verderer migrate")
    if facts.missing_post:
        detail = f"of this release; {', '.join(facts.missing_post)} waits for the last one to go"
        return warn("schema", detail, "verderer migrate --post, once nothing old runs any more")
    return ok("schema", "of this release")


def _scheduler(facts: DatabaseFacts) -> Finding:
    gone = facts.scheduler_gone_s
    if gone is not None and gone <= 0:
        return ok("scheduler", "one leads")
    since = f"none has led for {gone:.0f} s" if gone is not None else "none has ever led"
    return fail("scheduler", since, "verderer scheduler")
