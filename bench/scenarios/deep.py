"""One million queued steps: what a round and an idle tick cost, and what everything else loses."""

from __future__ import annotations

import time

from bench.bench import Bench
from bench.checks import until_ended
from bench.figures import Figure, at_most, number, percentile
from bench.load.deep import SHAPES, seed
from bench.load.documents import ONE, Bulk
from bench.load.http import drive
from bench.platform.platform import CLUSTERS, PROJECT
from bench.scenarios import dispatch, life, pages, submit
from verderer.usecases.lead import give_up_lease, take_lease
from verderer.usecases.place_runs import LEASE, Placer

_TERM_S = 600.0
_MOST_LOST = 20.0


async def run(bench: Bench) -> None:
    """Needs what the empty system reaches; measures that first where it is not known yet."""
    if submit.BULK not in bench.figures:
        await submit.bulk_of(bench, submit.BULK, ONE, runs=1000, steps=1)
    if dispatch.NAME not in bench.figures:
        await dispatch.run(bench)
    if life.LIFE not in bench.figures:
        await life.run(bench)
    platform = bench.platform
    await platform.wipe()
    await platform.start(schedulers=0, clusters=0)
    began = time.monotonic()
    steps = await seed(platform, bench.scale.deep)
    deep = f"{steps / 1000:,.0f}k queued"
    bench.say(f"  {deep} after {time.monotonic() - began:.0f} s")
    await pages.run(bench, deep)
    name = f"{submit.BULK}, {deep}"
    await submit.measure(bench, name, ONE, runs=1000, steps=1)
    _lost(bench, submit.BULK, name)
    await _rounds(bench, deep)
    await _rates(bench, deep)


async def _rounds(bench: Bench, deep: str) -> None:
    """The real placer against the real database, in this process so that it can be timed."""
    platform, ctx = bench.platform, bench.platform.context
    for cluster in CLUSTERS:
        platform.start_cluster(cluster)
    await platform.clusters_known(len(CLUSTERS))
    epoch = await take_lease(ctx, LEASE, holder="bench", ttl_s=_TERM_S, held=None)
    if epoch is None:
        raise RuntimeError("somebody else leads")
    placer = Placer(ctx, epoch=epoch)
    with bench.meter() as meter:
        load_s = await _timed(placer)
        while (await placer.round()).more:
            pass
    await _quiet(bench)
    note = f"all of the queue into memory, {SHAPES} lanes, and the first 2,000 placements"
    bench.figure(f"first round of a new leader, {deep}", "s", [load_s], meter, note=note)
    with bench.meter() as meter:
        idle = [await _timed(placer) * 1000 for _ in range(50)]
    name = f"idle tick, {deep}"
    tail = f"p99 {percentile(idle, 99):.2f} ms"
    bench.figure(name, "ms", idle, meter, goal=at_most(5), note=tail)
    make = Bulk(platform.token, PROJECT, ONE, runs=1000)
    rounds = []
    with bench.meter() as meter:
        for _ in range(max(3, bench.scale.repeats)):
            await drive(platform.roles.port, make, clients=2, most=2)
            make = Bulk(platform.token, PROJECT, ONE, runs=1000)
            rounds.append(await _timed(placer) * 1000)
            while (await placer.round()).more:
                pass
            await _quiet(bench)
    name = f"round that places 2,000 steps, {deep}"
    bench.figure(name, "ms", rounds, meter, goal=at_most(250))
    await give_up_lease(ctx, LEASE, holder="bench")


async def _quiet(bench: Bench) -> None:
    """Wait until everything that fits has been run."""
    sql = bench.platform.sql
    submitted = await sql.fetchval("SELECT count(*) FROM runs WHERE name = 'bench-one'")
    await until_ended(bench.platform, submitted, 300)


async def _timed(placer: Placer) -> float:
    began = time.perf_counter()
    await placer.round()
    return time.perf_counter() - began


async def _rates(bench: Bench, deep: str) -> None:
    platform = bench.platform
    platform.start_scheduler()
    await platform.led()
    one = Bulk(platform.token, PROJECT, ONE, runs=1)
    await drive(platform.roles.port, one, clients=1, most=1)
    await _quiet(bench)  # by then the queue is in its memory
    name = f"{life.LIFE}, {deep}"
    fed, meter = await life.live(bench, name, ONE, runs=500, steps=1)
    life.keep(bench, name, fed, meter, steps=1, note="")
    _lost(bench, life.LIFE, name)
    total = sum(
        cost.rss_mib
        for role, cost in meter.costs.items()
        if role in ("server", "scheduler", "postgres")
    )
    said = ", ".join(f"{role} {number(cost.rss_mib)}" for role, cost in meter.costs.items())
    goal = at_most(600, "Kueue 445 MB at 15,000")
    bench.figure(
        f"resident memory, control plane, {deep}", "MiB", [total], meter, goal=goal, note=said
    )
    await platform.roles.stop("scheduler", *CLUSTERS)
    name = f"{dispatch.NAME}, {deep}"
    value, meter = await dispatch.once(bench, name)
    dispatch.keep(bench, name, [value], meter)
    _lost(bench, dispatch.NAME, name)


def _lost(bench: Bench, before: str, after: str) -> None:
    """How much of a rate the deep queue costs."""
    old, new = bench.figures[before], bench.figures[after]
    # The work done for each is told too: the machine may have been busier at one of the times.
    cost = [sum(c.cpu_s for c in f.costs.values()) / f.operations for f in (old, new)]
    name = f"lost: {after}"
    bench.figures[name] = Figure(
        name=name,
        unit="%",
        values=[100 * (1 - new.median / old.median)],
        goal=at_most(_MOST_LOST),
        load=new.load,
        note=f"CPU for each {1e6 * cost[0]:.0f} µs before, {1e6 * cost[1]:.0f} µs after",
    )
