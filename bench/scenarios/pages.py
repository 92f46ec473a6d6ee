"""Lists, counters and pages while very much is stored."""

from __future__ import annotations

from bench.bench import Bench
from bench.figures import at_most, percentile
from bench.load.http import drive, request
from bench.platform.platform import PROJECT
from verderer.core.model.ids import run_id_text

_API = {
    "list of runs": "/api/v1/runs?limit=50",
    "list of queued runs": "/api/v1/runs?state=queued&limit=50",
}
_CONSOLE = {
    "console: overview with counters": "/",
    "console: runs": "/runs",
    "console: runs of one state": "/runs?q=state:queued",
    "console: runs by part of a name": "/runs?q=deep-7",
}


async def run(bench: Bench, stored: str) -> None:
    """`stored` says how much is there."""
    platform = bench.platform
    for name, path in _API.items():
        await _ask(bench, f"{name}, {stored}", request("GET", path, token=platform.token))
    for name, path in _CONSOLE.items():
        await _ask(bench, f"{name}, {stored}", request("GET", path, session=platform.session))
    run_id = await _some_run(bench)
    asked = request("GET", f"/runs/{run_id}", session=platform.session)
    await _ask(bench, f"console: a run of 100 steps, {stored}", asked)


async def _ask(bench: Bench, name: str, asked: bytes) -> None:
    port = bench.platform.roles.port
    await drive(port, lambda _: asked, clients=1, most=3)
    with bench.meter() as meter:
        served = await drive(port, lambda _: asked, clients=1, most=bench.scale.samples)
    if served.failures:
        raise RuntimeError(f"{name}: {served.failures[0]}")
    tail = percentile(served.seconds, 99) * 1000
    middle = percentile(served.seconds, 50) * 1000
    note = f"p50 {middle:.1f} ms"
    goal = at_most(100, "SkyPilot 10 s at 12,500")
    bench.say(f"  {name}: p50 {middle:.1f} ms, p99 {tail:.1f} ms")
    bench.figure(f"{name}, p99", "ms", [tail], meter, goal=goal, note=note)


async def _some_run(bench: Bench) -> str:
    found = await bench.platform.sql.fetchval(
        "SELECT r.id FROM runs r JOIN projects p ON p.id = r.project_id "
        "WHERE r.steps = 100 AND p.name = $1 ORDER BY r.id DESC LIMIT 1",
        PROJECT,
    )
    return run_id_text(found)
