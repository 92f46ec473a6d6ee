"""`python -m bench`: measure, print, and keep the figures."""

from __future__ import annotations

import argparse
import shutil
import tempfile
import time
import traceback
from dataclasses import replace
from pathlib import Path

import uvloop
from rich.console import Console

from bench.bench import QUICK, USUAL, Bench, Scale, Scenario
from bench.machine import Machine, describe, load_average
from bench.platform.platform import Platform, platform
from bench.report import show, write
from bench.scenarios import deep, dispatch, failover, latency, life, logs, raw, startup, submit

SCENARIOS: dict[str, Scenario] = {
    "raw": raw.run,
    "bulk": submit.bulk,
    "single": submit.single,
    "dispatch": dispatch.run,
    "life": life.run,
    "deep": deep.run,
    "agent": latency.to_agent,
    "local": latency.to_process,
    "chain": latency.sequence,
    "logs": logs.run,
    "up": startup.run,
    "failover": failover.run,
}


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser("bench", description="Measures the platform here and now.")
    parser.add_argument("--quick", action="store_true", help="one short run of each")
    parser.add_argument("--long", action="store_true", help="ten minutes of full life")
    parser.add_argument(
        "--only", action="append", choices=SCENARIOS, metavar="NAME",
        help=f"just this one, may be repeated: {', '.join(SCENARIOS)}",
    )  # fmt: skip
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the figures there too")
    parser.add_argument(
        "--profile", type=Path, metavar="FOLDER", help="write where the time goes; slows it down"
    )
    return parser.parse_args()


def _scale(given: argparse.Namespace) -> Scale:
    scale = QUICK if given.quick else USUAL
    return replace(scale, life_s=600.0) if given.long else scale


async def _run(given: argparse.Namespace, console: Console) -> int:
    # Not /tmp, which may be memory: the disk is part of what is measured.
    home = Path(tempfile.mkdtemp(prefix="verderer-bench-", dir=Path.home()))
    home.chmod(0o711)
    if given.profile:
        given.profile.mkdir(parents=True, exist_ok=True)
    try:
        async with platform(home, profile=given.profile) as made:
            return await _measure(given, made, home, console)
    finally:
        shutil.rmtree(home, ignore_errors=True)


async def _measure(given: argparse.Namespace, made: Platform, home: Path, console: Console) -> int:
    async with made.sql.acquire() as connection:
        machine: Machine = await describe(connection)
    bench = Bench(scale=_scale(given), platform=made, folder=home, say=console.print)
    broken = 0
    for name in given.only or SCENARIOS:
        began = time.monotonic()
        console.print(f"[bold]{name}[/] (load {load_average():.1f})")
        try:
            await SCENARIOS[name](bench)
        except Exception:  # noqa: BLE001 - the other figures are worth having all the same
            broken += 1
            console.print(traceback.format_exc(), markup=False)
        await made.note_statements(name)
        console.print(f"  took {time.monotonic() - began:.1f} s", style="dim")
    await made.stop()
    show(machine, bench.figures, console)
    if given.json:
        write(given.json, machine, bench.figures)
    return 1 if broken else 0


def main() -> None:
    terminal = Console().is_terminal
    console = Console(width=None if terminal else 200, soft_wrap=not terminal)
    raise SystemExit(uvloop.run(_run(_arguments(), console)))


if __name__ == "__main__":
    main()
