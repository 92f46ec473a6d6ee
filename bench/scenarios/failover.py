"""The leading scheduler is killed while work flows; another places on, and nothing is lost."""

from __future__ import annotations

import asyncio
import time

from bench.bench import Bench
from bench.checks import everything_ended_once, started_once, until_ended
from bench.figures import at_most
from bench.load.documents import ONE, Bulk
from bench.load.feeder import feed
from bench.platform.platform import LEADER, PROJECT, Platform
from bench.platform.process import Process

NAME = "scheduler failover, kill -9 to the next placement"
_NEXT = """
    SELECT extract(epoch FROM min(assigned_at) - $1)::float8 FROM attempts WHERE assigned_at > $1
"""
_BETWEEN_S = 6.0


async def run(bench: Bench) -> None:
    platform = bench.platform
    await platform.wipe()
    await platform.start(schedulers=2)
    kills = bench.scale.repeats
    bulk = Bulk(platform.token, PROJECT, ONE, runs=200)
    with bench.meter() as meter:
        feeding = asyncio.create_task(
            feed(platform, bulk, for_s=4 + kills * (_BETWEEN_S + 2), on_the_way=4000)
        )
        await asyncio.sleep(3)
        gaps = [await _kill(bench) for _ in range(kills)]
        fed = await feeding
    await until_ended(platform, fed.submitted, 120)
    note = await everything_ended_once(platform, submitted=fed.submitted)
    await platform.stop()
    note += f"; {started_once(platform):,} starts on the clusters, none twice"
    goal = at_most(5, "Armada 15 s, Slurm 120 s")
    bench.figure(NAME, "s", gaps, meter, goal=goal, note=note)


async def _kill(bench: Bench) -> float:
    """Kill who leads; seconds until somebody placed again."""
    platform = bench.platform
    leader = await _leader(platform)
    at = await platform.sql.fetchval("SELECT clock_timestamp()")
    leader.kill()
    platform.roles.running.pop(leader.name)
    deadline = time.monotonic() + 60
    while (gap := await platform.sql.fetchval(_NEXT, at)) is None:
        if time.monotonic() > deadline:
            raise TimeoutError("nobody places")
        await asyncio.sleep(0.02)
    bench.say(f"  placed again after {gap:.2f} s")
    platform.start_scheduler(leader.name)
    await asyncio.sleep(_BETWEEN_S)
    return float(gap)


async def _leader(platform: Platform) -> Process:
    while (holder := await platform.sql.fetchval(LEADER)) is None:
        await asyncio.sleep(0.05)
    pid = int(holder.rsplit("-", 2)[1])
    return next(p for p in platform.roles.running.values() if p.pid == pid)
