"""Durable submission: many runs in a request, and one run in a request of each of 64 clients."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from bench.bench import Bench
from bench.figures import at_least, at_most, percentile
from bench.load.documents import HUNDRED, ONE, Bulk, Single
from bench.load.http import drive
from bench.platform.platform import PROJECT
from bench.scenarios.raw import COPY, MANY_CLIENTS

BULK = "bulk submit, runs of one step"
BULK_FAN = "bulk submit, runs of 100 steps"
SINGLE = "single submit, 64 clients"


async def bulk(bench: Bench) -> None:
    """Nothing is placed meanwhile: no scheduler, no clusters."""
    await bulk_of(bench, BULK, ONE, runs=1000, steps=1)
    await bulk_of(bench, BULK_FAN, HUNDRED, runs=20, steps=100)


async def bulk_of(bench: Bench, name: str, document: str, *, runs: int, steps: int) -> None:
    await bench.platform.wipe()
    await bench.platform.start(schedulers=0, clusters=0)
    await measure(bench, name, document, runs=runs, steps=steps)


async def measure(bench: Bench, name: str, document: str, *, runs: int, steps: int) -> None:
    """Needs a server."""
    platform = bench.platform
    values, done = [], 0
    make = Bulk(platform.token, PROJECT, document, runs=runs)
    await drive(platform.roles.port, make, clients=2, most=2)
    with bench.meter() as meter:
        for number in range(bench.scale.repeats):
            served = await drive(
                platform.roles.port, partial(_later, make, number + 1), clients=3,
                for_s=bench.scale.seconds,
            )  # fmt: skip
            if served.failures:
                raise RuntimeError(served.failures[0])
            done += len(served.seconds) * runs * steps
            values.append(len(served.seconds) * runs * steps / served.wall_s)
            bench.say(f"  {name}: {values[-1]:,.0f} steps/s")
    await platform.note_statements(name)
    peer = "Slurm 1,000/s"
    note = f"{runs} runs a request, 3 requests at a time, idempotency keys"
    bench.figure(
        name, "steps/s", values, meter,
        goal=at_least(10_000, peer), note=note, raw=COPY, operations=done,
    )  # fmt: skip


def _later(make: Callable[[int], bytes], turn: int, number: int) -> bytes:
    """The request of that number in that turn, so that no key comes twice."""
    return make(turn * 1_000_000 + number)


async def single(bench: Bench) -> None:
    platform = bench.platform
    await platform.wipe()
    await platform.start(schedulers=0, clusters=0)
    make = Single(platform.token, PROJECT, ONE)
    await drive(platform.roles.port, make, clients=8, most=100)
    rates, middles, tails, done = [], [], [], 0
    with bench.meter() as meter:
        for number in range(bench.scale.repeats):
            served = await drive(
                platform.roles.port, partial(_later, make, number + 1), clients=64,
                for_s=bench.scale.seconds,
            )  # fmt: skip
            if served.failures:
                raise RuntimeError(served.failures[0])
            done += len(served.seconds)
            rates.append(len(served.seconds) / served.wall_s)
            middles.append(percentile(served.seconds, 50) * 1000)
            tails.append(percentile(served.seconds, 99) * 1000)
            bench.say(f"  {SINGLE}: {rates[-1]:,.0f}/s, p99 {tails[-1]:.1f} ms")
    goal = at_least(3000, "Slurm 1,000/s")
    bench.figure(
        SINGLE, "runs/s", rates, meter, goal=goal, raw=MANY_CLIENTS, operations=done
    )  # fmt: skip
    bench.figure(f"{SINGLE}, p50", "ms", middles, meter)
    bench.figure(f"{SINGLE}, p99", "ms", tails, meter, goal=at_most(50))
