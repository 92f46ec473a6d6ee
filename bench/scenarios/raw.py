"""The raw limit of this PostgreSQL: what no program on top of it can pass."""

from __future__ import annotations

import asyncio
import time

import asyncpg

from bench.bench import Bench
from verderer.store.embedded.launcher import dsn_at

ONE_CLIENT = "raw: durable 1-row commits, 1 client"
MANY_CLIENTS = "raw: durable 1-row commits, 16 clients"
COPY = "raw: COPY of 1,000 rows a commit"
CLAIM = "raw: claims with SKIP LOCKED, 1,000 a commit"

_TABLE = """
    DROP TABLE IF EXISTS bench_raw;
    CREATE TABLE bench_raw (
        id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, owner int NOT NULL,
        state text NOT NULL DEFAULT 'ready', body text NOT NULL) WITH (fillfactor = 70);
    CREATE INDEX bench_raw_ready ON bench_raw (id) WHERE state = 'ready';
"""
_INSERT = "INSERT INTO bench_raw (owner, body) VALUES ($1, $2)"
_CLAIM = """
    WITH due AS (SELECT id FROM bench_raw WHERE state = 'ready' ORDER BY id LIMIT 1000
                    FOR NO KEY UPDATE SKIP LOCKED)
    UPDATE bench_raw AS b SET state = 'taken' FROM due WHERE b.id = due.id RETURNING b.id
"""
_BODY = "x" * 100


async def run(bench: Bench) -> None:
    dsn = dsn_at(bench.platform.roles.folder / "data" / "postgres")
    connections = [await asyncpg.connect(dsn) for _ in range(16)]
    try:
        await _measure(bench, connections)
    finally:
        await connections[0].execute("DROP TABLE IF EXISTS bench_raw")
        for connection in connections:
            await connection.close()


async def _measure(bench: Bench, connections: list[asyncpg.Connection]) -> None:
    for_s = min(3.0, bench.scale.seconds / 2)
    for name, unit, work, clients in (
        (ONE_CLIENT, "commits/s", _insert, 1),
        (MANY_CLIENTS, "commits/s", _insert, 16),
        (COPY, "rows/s", _copy, 2),
        (CLAIM, "rows/s", _claim, 2),
    ):
        values = []
        await connections[0].execute(_TABLE)
        with bench.meter() as meter:
            for _ in range(bench.scale.repeats):
                if work is _claim:
                    await _fill(connections[0])
                until = time.perf_counter() + for_s
                began = time.perf_counter()
                done = await asyncio.gather(*(work(c, until) for c in connections[:clients]))
                values.append(sum(done) / (time.perf_counter() - began))
        bench.figure(name, unit, values, meter, note=f"{clients} connections")


async def _insert(connection: asyncpg.Connection, until: float) -> int:
    done = 0
    while time.perf_counter() < until:
        await connection.execute(_INSERT, done, _BODY)
        done += 1
    return done


async def _copy(connection: asyncpg.Connection, until: float) -> int:
    rows = [(i, _BODY) for i in range(1000)]
    done = 0
    while time.perf_counter() < until:
        await connection.copy_records_to_table("bench_raw", records=rows, columns=("owner", "body"))
        done += len(rows)
    return done


async def _fill(connection: asyncpg.Connection) -> None:
    await connection.execute("TRUNCATE bench_raw")
    await connection.execute(
        "INSERT INTO bench_raw (owner, body) SELECT n, $1 FROM generate_series(1, 300000) AS n",
        _BODY,
    )
    await connection.execute("ANALYZE bench_raw")


async def _claim(connection: asyncpg.Connection, until: float) -> int:
    done = 0
    while time.perf_counter() < until:
        found = await connection.fetch(_CLAIM)
        if not found:
            break
        done += len(found)
    return done
