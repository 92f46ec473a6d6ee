"""A deep queue: steps that wait for accelerators, multiplied inside the database."""

from __future__ import annotations

import json

from bench.load.documents import Single
from bench.load.http import drive
from bench.platform.fleet import GPU
from bench.platform.platform import PROJECT, Platform

SHAPES = 64
"""Different amounts that steps ask for, each waiting in a lane of its own."""
_FAN = 100

# Copies of each pattern run, a millisecond of age apart; half of all steps alone in their run.
_SEED = """
    SET LOCAL session_replication_role = replica;  -- foreign keys hold by construction

    CREATE TEMP TABLE pattern ON COMMIT DROP AS
        SELECT id, document, steps FROM runs WHERE name LIKE 'bench-deep-%';
    CREATE TEMP TABLE fresh ON COMMIT DROP AS
        SELECT p.id - (n::bigint << 22) AS id, p.id AS pattern
          FROM pattern AS p, generate_series(1, {copies} * {fan} / p.steps) AS n;
    INSERT INTO runs (id, project_id, name, labels, document, parameters, state, steps, open, actor,
                      user_id)
        SELECT f.id, r.project_id, r.name, r.labels, r.document, r.parameters, r.state, r.steps,
               r.open, r.actor, r.user_id
          FROM fresh AS f JOIN runs AS r ON r.id = f.pattern;
    CREATE TEMP TABLE numbers ON COMMIT DROP AS
        SELECT nextval('step_ids') - 1 AS base;
    INSERT INTO steps (id, run_id, idx, name, template, matrix, shape_id, state, waits, ready_at)
        SELECT (SELECT base FROM numbers) + row_number() OVER (ORDER BY f.id, s.idx), f.id, s.idx,
               s.name, s.template, s.matrix, s.shape_id, s.state, s.waits, s.ready_at
          FROM fresh AS f JOIN steps AS s ON s.run_id = f.pattern;
    INSERT INTO queue (step_id, run_id, project_id, shape_id, resource_group_id)
        SELECT s.id, s.run_id, r.project_id, s.shape_id, r.resource_group_id
          FROM fresh AS f JOIN steps AS s ON s.run_id = f.id JOIN runs AS r ON r.id = f.id;
    SELECT setval('step_ids', (SELECT 1000 * (max(id) / 1000 + 2) + 1 FROM steps));
    INSERT INTO run_counters (project_id, state, shard, n)
        SELECT project_id, state, 15, count(*)
          FROM fresh AS f JOIN runs AS r USING (id) GROUP BY project_id, state
        ON CONFLICT (project_id, state, shard) DO UPDATE SET n = run_counters.n + excluded.n;
"""


async def seed(platform: Platform, steps: int) -> int:
    """Queue about `steps` steps in `SHAPES` shapes, half of them in runs of 100; say how many.

    The first run of each kind goes through the door; the rest are copies of their rows. They ask
    for all accelerators of a node, of which the clusters have a dozen.
    """
    documents = [_document(cpu, fan) for cpu in range(1, SHAPES + 1) for fan in (1, _FAN)]
    for document in documents:
        make = Single(platform.token, PROJECT, document)
        served = await drive(platform.roles.port, make, clients=1, most=1)
        if served.failures:
            raise RuntimeError(served.failures[0])
    copies = steps // (2 * SHAPES * _FAN)
    async with platform.sql.acquire() as connection, connection.transaction():
        await connection.execute(_SEED.format(copies=copies, fan=_FAN), timeout=1200)
    await platform.sql.execute("VACUUM (ANALYZE)", timeout=1200)
    await platform.sql.execute("CHECKPOINT", timeout=1200)
    return int(await platform.sql.fetchval("SELECT count(*) FROM queue"))


def _document(cpu: int, fan: int) -> str:
    step = {
        "name": "work",
        "command": ["sh", "-c", ":"],
        "resources": {"requests": {"cpu": cpu, GPU: 8}, "limits": {GPU: 8}},
    }
    if fan > 1:
        step["matrix"] = {"seed": list(range(fan))}
    name = f"bench-deep-{cpu}-{fan}"
    return json.dumps({"metadata": {"name": name}, "steps": [step]})
