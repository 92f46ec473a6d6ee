"""Placement and dispatch: steps that wait are given to three clusters, whose agents say running."""

from __future__ import annotations

import asyncio
import time

from bench.bench import Bench
from bench.figures import at_least
from bench.load.documents import ONE, Bulk
from bench.load.http import drive
from bench.platform.platform import CLUSTERS, PROJECT
from bench.scenarios.raw import CLAIM
from bench.usage import Meter

NAME = "placement and dispatch to 3 clusters"
_RUNNING = "SELECT count(*) FROM attempts WHERE state = 'running' AND assigned_at > $1"
_FIRST = """
    SELECT extract(epoch FROM clock_timestamp() - min(assigned_at)) FROM attempts
     WHERE assigned_at > $1
"""
_BULK = 1000


async def run(bench: Bench) -> None:
    values = []
    for _ in range(min(bench.scale.repeats, 3)):
        await bench.platform.wipe()
        await bench.platform.start(schedulers=0, clusters=0)
        value, meter = await once(bench, NAME)
        values.append(value)
    keep(bench, NAME, values, meter)


async def once(bench: Bench, name: str) -> tuple[float, Meter]:
    """Steps a second. Needs a server and neither clusters nor a scheduler."""
    platform = bench.platform
    steps = bench.scale.queued
    for cluster in CLUSTERS:
        platform.start_cluster(cluster, run_s=None)
    await platform.clusters_known(len(CLUSTERS))
    make = Bulk(platform.token, PROJECT, ONE, runs=_BULK)
    await drive(platform.roles.port, make, clients=2, most=steps // _BULK)
    with bench.meter() as meter:
        platform.start_scheduler()
        value = steps / await _until_running(bench, steps)
    await platform.note_statements(name)
    bench.say(f"  {name}: {value:,.0f} steps/s")
    return value, meter


def keep(bench: Bench, name: str, values: list[float], meter: Meter) -> None:
    steps = bench.scale.queued
    bench.figure(
        name,
        "steps/s",
        values,
        meter,
        goal=at_least(2000, "MultiKueue 95/s"),
        note=f"{steps:,} steps, from the first assignment to the last `running` written",
        raw=CLAIM,
        operations=steps,
    )


async def _until_running(bench: Bench, steps: int) -> float:
    """Seconds since the first assignment."""
    sql = bench.platform.sql
    began = await sql.fetchval("SELECT clock_timestamp()")
    deadline = time.monotonic() + 300
    while (running := await sql.fetchval(_RUNNING, began)) < steps:
        bench.platform.check()
        if time.monotonic() > deadline:
            raise TimeoutError(f"{running} of {steps} steps run")
        # Counting costs the server time, so look seldom while much is left.
        await asyncio.sleep(0.02 if running > steps * 0.95 else 0.3)
    return float(await sql.fetchval(_FIRST, began))
