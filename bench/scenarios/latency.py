"""From a submission to its start, on an idle system."""

from __future__ import annotations

import asyncio
import json
import random
import shutil
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

from bench.bench import Bench
from bench.checks import until_ended
from bench.figures import at_most, percentile
from bench.load.documents import CHAIN_STEPS, ONE, Single, chain
from bench.load.http import Connection
from bench.platform.platform import CLUSTERS, PROJECT
from verderer.core.model.ids import parse_run_id

AGENT = "submit to arrival at the agent, idle"
PROCESS = "submit to process running on local, idle"
_WARM = 5
"""Submissions that are not counted: they find nothing prepared."""
CHAIN = f"{CHAIN_STEPS} sequential steps, a step"
_CHAIN_S = """
    SELECT extract(epoch FROM ended_at - created_at)::float8 FROM runs WHERE id = $1
"""


async def to_agent(bench: Bench) -> None:
    """The moment is taken where the agent hands the attempt to its driver."""
    platform = bench.platform
    await platform.wipe()
    folder = platform.roles.folder
    moments = {cluster: folder / f"moments-{cluster}" for cluster in CLUSTERS}
    for path in moments.values():
        path.unlink(missing_ok=True)
    await platform.start(clusters=0)
    for cluster, path in moments.items():
        platform.start_cluster(cluster, moments=str(path))
    await platform.clusters_known(len(CLUSTERS))
    make = Single(platform.token, PROJECT, ONE)
    with bench.meter() as meter:
        sent = await _one_by_one(bench, make, time.monotonic_ns)
        await until_ended(platform, bench.scale.samples + _WARM, 30)
    arrived: dict[int, int] = {}
    for path in moments.values():
        for line in path.read_text().splitlines():
            run, _, at = line.split()
            arrived[int(run)] = int(at)
    milliseconds = [(arrived[run] - at) / 1e6 for run, at in sent.items()]
    peer = "graphile-worker 4 ms, Hatchet 25 ms"
    middle, tail = percentile(milliseconds, 50), percentile(milliseconds, 99)
    bench.figure(f"{AGENT}, p50", "ms", [middle], meter, goal=at_most(15, peer))
    bench.figure(f"{AGENT}, p99", "ms", [tail], meter, goal=at_most(100))


async def to_process(bench: Bench) -> None:
    """The moment is what the started program itself reads off the clock."""
    platform = bench.platform
    await platform.wipe()
    await platform.start(clusters=0)
    await platform.start_local()
    moments = platform.roles.folder / "moments-local"
    moments.unlink(missing_ok=True)
    make = Single(platform.token, PROJECT, _telling(moments))
    with bench.meter() as meter:
        sent = await _one_by_one(bench, make, time.time_ns)
        await until_ended(platform, bench.scale.samples + _WARM, 60)
    began = {}
    for line in moments.read_text().splitlines():
        run, at = line.split()
        began[parse_run_id(run)] = int(at)
    milliseconds = [(began[run] - at) / 1e6 for run, at in sent.items()]
    middle, tail = percentile(milliseconds, 50), percentile(milliseconds, 99)
    note = "includes starting sh and date"
    bench.figure(f"{PROCESS}, p50", "ms", [middle], meter, goal=at_most(50), note=note)
    bench.figure(f"{PROCESS}, p99", "ms", [tail], meter, goal=at_most(200))


def _telling(moments: Path) -> str:
    code = f'echo "$VERDERER_RUN_ID $(date +%s%N)" >> {moments}'
    step = {"name": "tell", "command": ["sh", "-c", code]}
    return json.dumps({"metadata": {"name": "bench-tell"}, "steps": [step]})


async def _one_by_one(bench: Bench, make: Single, now: Callable[[], int]) -> dict[int, int]:
    """Submit so that each finds an idle system; when each was sent, by run."""
    connection = await Connection.open(bench.platform.roles.port)
    sent = {}
    for number in range(bench.scale.samples + _WARM):
        asked = make(number)
        at = now()
        status, body = await connection.exchange(asked)
        if status >= 300:
            raise RuntimeError(f"{status} {body[:300]!r}")
        if number >= _WARM:
            sent[parse_run_id(json.loads(body)["id"])] = at
        await asyncio.sleep(random.uniform(0.05, 0.15))
    connection.close()
    return sent


async def sequence(bench: Bench) -> None:
    """Steps that wait for each other, on a cluster in memory and as processes of this machine."""
    platform = bench.platform
    await platform.wipe()
    await platform.start(clusters=1)
    with bench.meter() as meter:
        values = await _chains(bench)
    peer = "Windmill 52 ms, Airflow 2,900 ms"
    bench.figure(f"{CHAIN}, cluster in memory", "ms", values, meter, goal=at_most(20, peer))
    await platform.wipe()
    await platform.start(clusters=0)
    await platform.start_local()
    work_ms = _work_ms()
    with bench.meter() as meter:
        values = [value - work_ms for value in await _chains(bench)]
    note = f"beyond the work itself, {work_ms:.1f} ms to start and end `sh -c :`"
    bench.figure(f"{CHAIN}, local", "ms", values, meter, goal=at_most(20, peer), note=note)


async def _chains(bench: Bench) -> list[float]:
    """Milliseconds a step, for each run."""
    platform = bench.platform
    make = Single(platform.token, PROJECT, chain())
    connection = await Connection.open(platform.roles.port)
    values = []
    for number in range(bench.scale.repeats + 1):
        status, body = await connection.exchange(make(number))
        if status >= 300:
            raise RuntimeError(f"{status} {body[:300]!r}")
        await until_ended(platform, number + 1, 120)
        run = parse_run_id(json.loads(body)["id"])
        values.append(await platform.sql.fetchval(_CHAIN_S, run) * 1000 / CHAIN_STEPS)
    connection.close()
    return values[1:]


def _work_ms() -> float:
    shell = shutil.which("sh") or "/bin/sh"
    spent = []
    for _ in range(50):
        began = time.perf_counter()
        subprocess.run([shell, "-c", ":"], check=True)
        spent.append((time.perf_counter() - began) * 1000)
    return percentile(spent, 50)
