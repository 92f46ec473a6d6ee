"""The full life of a step, again and again: submitted, placed, run, ended, with its history."""

from __future__ import annotations

from bench.bench import Bench
from bench.checks import ended, everything_ended_once, until_ended
from bench.figures import at_least
from bench.load.documents import ONE, TEN, Bulk
from bench.load.feeder import Fed, feed
from bench.platform.platform import PROJECT
from bench.scenarios.raw import CLAIM
from bench.usage import Meter

LIFE = "full life, runs of one step"
LIFE_TEN = "full life, pipelines of ten steps"
GOAL = at_least(2000, "Slurm 500/s")
_ON_THE_WAY = 6_000
"""Steps that are not over at any moment: enough that nobody waits for the load."""


async def run(bench: Bench) -> None:
    for name, document, runs, steps in ((LIFE, ONE, 500, 1), (LIFE_TEN, TEN, 50, 10)):
        await bench.platform.wipe()
        await bench.platform.start()
        fed, meter = await live(bench, name, document, runs=runs, steps=steps)
        proof = await everything_ended_once(bench.platform, submitted=fed.submitted)
        keep(bench, name, fed, meter, steps=steps, note=proof)


async def live(
    bench: Bench, name: str, document: str, *, runs: int, steps: int
) -> tuple[Fed, Meter]:
    """Keep steps on the way for a while, then wait until all are over."""
    platform = bench.platform
    before = await ended(platform)
    bulk = Bulk(platform.token, PROJECT, document, runs=runs)
    with bench.meter() as meter:
        fed = await feed(platform, bulk, for_s=bench.scale.life_s, on_the_way=_ON_THE_WAY // steps)
    await platform.note_statements(name)
    await until_ended(platform, before + fed.submitted, 60 + bench.scale.life_s)
    return fed, meter


def keep(bench: Bench, name: str, fed: Fed, meter: Meter, *, steps: int, note: str) -> None:
    """The figure: ends a second without the first fifth of the time."""
    value = fed.rate(skip_s=bench.scale.life_s / 5) * steps
    bench.say(f"  {name}: {value:,.0f} steps/s")
    bench.figure(
        name,
        "steps/s",
        [value],
        meter,
        goal=GOAL,
        note=f"{meter.wall_s:.0f} s; {note}",
        raw=CLAIM,
        operations=fed.ended * steps,
    )
