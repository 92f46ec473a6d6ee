"""`verderer up`, from the command to the line that says ready, and what it then keeps resident."""

from __future__ import annotations

import asyncio
import sys
import time
from pathlib import Path

from bench.bench import Bench
from bench.figures import at_most
from bench.platform.process import Process, family, peak_rss_mib, shared_out_mib
from bench.platform.roles import free_port

FIRST = "`verderer up` to ready, first time"
AGAIN = "`verderer up` to ready, existing data"
_IDLE = {
    "agent": ("resident memory, agent idle", 64.0),
    "server": ("resident memory, server idle", 150.0),
    "scheduler": ("resident memory, scheduler idle", None),
}


async def run(bench: Bench) -> None:
    platform = bench.platform
    await platform.wipe()
    first: list[float] = []
    again: list[float] = []
    resident: dict[str, float] = {}
    repeats = min(3, bench.scale.repeats)
    with bench.meter() as meter:
        for number in range(repeats):
            home = platform.roles.folder / f"up-{number}"
            first.append((await _up(bench, home))[0])
            for _ in range(min(2, repeats)):
                seconds, resident = await _up(bench, home)
                again.append(seconds)
    bench.figure(FIRST, "s", first, meter, goal=at_most(10))
    bench.figure(AGAIN, "s", again, meter, goal=at_most(3))
    for role, (name, bound) in _IDLE.items():
        goal = at_most(bound) if bound else None
        bench.figure(name, "MiB", [resident[role]], meter, goal=goal)


async def _up(bench: Bench, home: Path) -> tuple[float, dict[str, float]]:
    """Seconds until it says that it is ready, and MiB by role."""
    log = bench.platform.roles.folder / f"{home.name}.log"
    log.write_text("")
    environment = bench.platform.roles.environment(
        VERDERER_DATA_DIR=str(home), VERDERER_SERVER_PORT=str(free_port())
    )
    argv = [sys.executable, "-m", "verderer.cli.main", "up"]
    began = time.monotonic()
    process = Process("up", argv, environment, log)
    try:
        while "is ready at" not in log.read_text():
            process.check()
            if time.monotonic() - began > 90:
                raise TimeoutError(log.read_text()[-2000:])
            await asyncio.sleep(0.005)
        seconds = time.monotonic() - began
        await asyncio.sleep(1.5)
        return seconds, _resident(process.pid)
    finally:
        await asyncio.to_thread(process.stop)


def _resident(pid: int) -> dict[str, float]:
    found: dict[str, float] = {}
    for one in family(pid)[1:]:
        words = Path(f"/proc/{one}/cmdline").read_bytes().decode().split("\0")
        for role in ("server", "scheduler", "agent", "postgres"):
            if role in words and "-m" in words:
                found[role] = shared_out_mib(one) if role == "postgres" else peak_rss_mib(one)
    return found
