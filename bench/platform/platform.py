"""A whole control plane with clusters, on a fresh data folder, as a bench needs it."""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import asyncpg

from bench.platform.fleet import Orders
from bench.platform.process import Process
from bench.platform.roles import Roles
from verderer.cli.assembly import open_context
from verderer.cli.configuration import load
from verderer.cli.data_folder import with_secret_key
from verderer.core.credentials import TokenKind, hash_token, hint_of, make_token
from verderer.core.model.actor import Actor, ActorKind
from verderer.settings import Secret, Settings
from verderer.store.embedded.launcher import dsn_at
from verderer.store.tables import people
from verderer.usecases.clusters import create_cluster_credential
from verderer.usecases.context import Context

_SETTLES_S = 1.5
"""A process sets aside what it made at its start; most of its life lies behind that."""
CLUSTERS = ("alpha", "beta", "gamma")
PROJECT = "demo"
_STATEMENTS = """
    SELECT calls, rows, total_exec_time AS ms, total_exec_time / calls AS each_ms,
           wal_bytes::bigint / 1024 AS wal_kb,
           regexp_replace(left(query, 300), '\\s+', ' ', 'g') AS q
      FROM pg_stat_statements ORDER BY total_exec_time DESC LIMIT 30
"""
_EXPLAIN = """
    ALTER DATABASE verderer SET session_preload_libraries = 'auto_explain';
    ALTER DATABASE verderer SET auto_explain.log_min_duration = '200ms';
    ALTER DATABASE verderer SET auto_explain.log_analyze = on;
    ALTER DATABASE verderer SET auto_explain.log_timing = off;
    ALTER DATABASE verderer SET auto_explain.log_buffers = on;
"""
"""When profiling: the plan of every slow statement goes to PostgreSQL's log."""
_OPERATOR = Actor(kind=ActorKind.SYSTEM, name="bench", platform_admin=True)
LEADER = "SELECT holder FROM leases WHERE name = 'placement' AND expires_at > now()"
_WIPE = """
    TRUNCATE runs, steps, needs, queue, attempts, artifacts, log_chunks, lane_holds, ledger, audit,
             run_counters CASCADE;
    UPDATE capacity SET reserved = 0;
    DELETE FROM heartbeats;
    SELECT pg_stat_statements_reset();
"""


class Platform:
    """Made by `platform()`. PostgreSQL runs all the time; the rest is started as needed."""

    def __init__(self, roles: Roles, context: Context, sql: asyncpg.Pool[Any]) -> None:
        self.roles = roles
        self.context = context
        self.sql = sql
        self.token = ""
        self.session = ""
        self._credentials: dict[str, str] = {}
        self._turn = 0

    async def prepare(self) -> None:
        """Somebody who may submit, and clusters to submit to."""
        self.token, self.session = await _make_person(self.context)
        for cluster in CLUSTERS:
            self._credentials[cluster] = await create_cluster_credential(
                self.context, _OPERATOR, cluster, "kubernetes"
            )

    async def start(
        self, *, server: bool = True, schedulers: int = 1, clusters: int = 3, **fleet: Any
    ) -> None:
        """Start what is named; `fleet` goes into each cluster's `Orders`."""
        if server:
            await self.roles.start_server()
        for cluster in CLUSTERS[:clusters]:
            self.start_cluster(cluster, **fleet)
        if clusters:
            await self.clusters_known(clusters)
        for number in range(schedulers):
            self.start_scheduler(f"scheduler-{number}" if schedulers > 1 else "scheduler")
        if schedulers:
            await self.led()
        await asyncio.sleep(_SETTLES_S)

    def start_scheduler(self, name: str = "scheduler") -> Process:
        return self.roles.start("scheduler", name)

    async def led(self) -> None:
        """Wait until a scheduler of this moment leads."""
        schedulers = [p for n, p in self.roles.running.items() if n.startswith("scheduler")]

        async def leads() -> bool:
            holder = await self.sql.fetchval(LEADER)
            return holder is not None and any(f"-{p.pid}-" in holder for p in schedulers)

        await self.roles.until(leads, 30, schedulers[0])

    def start_cluster(self, cluster: str, **fleet: Any) -> Process:
        """One agent over a cluster in memory, empty and with an empty journal."""
        self._turn += 1
        state = self.roles.folder / "agents" / f"{cluster}-{self._turn}"
        state.mkdir(parents=True)
        orders = Orders(
            server_url=self.roles.url,
            credential=self._credentials[cluster],
            state_dir=str(state),
            summary=str(self.summary(cluster)),
            **fleet,
        )
        return self.roles.start_module(cluster, "bench.platform.fleet", **orders.variable())

    def summary(self, cluster: str) -> Path:
        """Where a cluster writes at its end what it has started."""
        return self.roles.folder / f"{cluster}.json"

    async def clusters_known(self, clusters: int) -> None:
        async def heard() -> bool:
            found = await self.sql.fetchval(
                "SELECT count(DISTINCT c.cluster_id) FROM clusters c JOIN nodes n "
                "ON n.cluster_id = c.id JOIN heartbeats h ON h.cluster_id = c.id "
                "WHERE c.cluster_id = ANY($1) AND h.seen_at > now() - interval '5 s'",
                list(CLUSTERS),
            )
            return int(found) >= clusters

        await self.roles.until(heard, 30, self.roles.running[CLUSTERS[0]])

    async def start_local(self) -> Process:
        """The real local agent, whose steps are processes of this machine."""
        shutil.rmtree(self.roles.folder / "data" / "agent" / "spool", ignore_errors=True)
        process = self.roles.start("agent")

        async def heard() -> bool:
            return bool(
                await self.sql.fetchval(
                    "SELECT count(*) FROM nodes n JOIN clusters c ON c.id = n.cluster_id "
                    "WHERE c.cluster_id = 'local' AND n.reported_at > now() - interval '5 s'"
                )
            )

        await self.roles.until(heard, 30, process)
        return process

    async def stop(self) -> None:
        """Stop all but PostgreSQL."""
        await self.roles.stop(*(name for name in self.roles.running if name != "postgres"))

    async def note_statements(self, name: str) -> None:
        """When profiling: which statements took how long since the last call, to a file."""
        if self.roles.profile is None:
            return
        lines = ["   calls     rows   total ms   each ms    wal kB  statement"]
        lines += [
            f"{row['calls']:8} {row['rows']:8} {row['ms']:10.1f} {row['each_ms']:9.3f} "
            f"{row['wal_kb']:9}  {row['q']}"
            for row in await self.sql.fetch(_STATEMENTS)
        ]
        path = self.roles.profile / f"{name.replace(' ', '-')}.statements.txt"
        path.write_text("\n".join(lines) + "\n")
        await self.sql.execute("SELECT pg_stat_statements_reset()")

    async def wipe(self) -> None:
        """Stop all but PostgreSQL and forget every run; a checkpoint, so that runs are alike."""
        await self.stop()
        await self.sql.execute(_WIPE)
        await self.sql.execute("CHECKPOINT")

    def check(self) -> None:
        """Raise if a process that should run has ended."""
        for process in self.roles.running.values():
            process.check()


async def _make_person(context: Context) -> tuple[str, str]:
    token, session = (
        make_token(kind, context.secret()) for kind in (TokenKind.USER, TokenKind.SESSION)
    )
    life = timedelta(days=1)
    async with context.db.transaction() as tx:
        user = await people.add_user(
            tx, email="bench@example.org", name="Bench", password_hash="-", platform_admin=True
        )
        await people.set_password(tx, user.id, "-", must_change=False)
        await people.add_token(
            tx, user.id, hash_token(token), name="bench", hint=hint_of(token), read_only=False,
            life=life,
        )  # fmt: skip
        await people.add_session(tx, user.id, hash_token(session), life=life, origin="", agent="")
    return token, session


def settings_of(roles: Roles) -> Settings:
    """What the roles read from their environment, with the key and the address filled in."""
    flags = {"data_dir": roles.folder / "data", "server.port": roles.port}
    settings = with_secret_key(load(config=None, flags=flags))
    address = Secret(dsn_at(settings.postgres_dir))
    return replace(settings, database=replace(settings.database, url=address, pool_size=4))


@asynccontextmanager
async def platform(folder: Path, *, profile: Path | None = None) -> AsyncIterator[Platform]:
    """PostgreSQL on a fresh data folder, migrated; everything ends with the block."""
    async with AsyncExitStack() as stack:
        roles = Roles(folder, profile=profile)
        if profile is not None:
            stack.callback(_keep_logs, roles, profile)
        stack.push_async_callback(roles.stop_all)
        await roles.start_postgres()
        migrate = roles.start("migrate")
        if await asyncio.to_thread(migrate.wait, 120):
            migrate.check()
        roles.running.pop("migrate")
        settings = settings_of(roles)
        context = await stack.enter_async_context(open_context(settings, role="bench"))
        sql = await asyncpg.create_pool(dsn_at(settings.postgres_dir), min_size=1, max_size=4)
        stack.push_async_callback(sql.close)
        await sql.execute("CREATE EXTENSION IF NOT EXISTS pg_stat_statements")
        if profile is not None:
            await sql.execute(_EXPLAIN)
        made = Platform(roles, context, sql)
        await made.prepare()
        yield made


def _keep_logs(roles: Roles, folder: Path) -> None:
    for path in roles.logs.glob("*.log"):
        shutil.copy(path, folder / path.name)
