"""`kill -9` of everything, again and again: nothing is lost, nothing runs twice."""

from __future__ import annotations

import asyncio
import random
import time
from collections import Counter
from pathlib import Path

import pytest

from tests.chaos.platform import Platform, check_rows, platform, rows, submit, wait_for

pytestmark = [pytest.mark.chaos, pytest.mark.timeout(400), pytest.mark.xdist_group("chaos")]

LAYERS, WIDTH = 20, 10
KILLS_FOR_S = 30.0

# A lock held for the life of the program shows any overlap of two attempts of one step.
SCRIPT = """
      exec 9>>"$DIARY/$VERDERER_STEP_NAME.lock"
      flock -n 9 || echo "overlap $VERDERER_STEP_NAME $VERDERER_ATTEMPT" >> "$DIARY/diary"
      echo "start $VERDERER_STEP_NAME $VERDERER_ATTEMPT" >> "$DIARY/diary"
      sleep 0.$((RANDOM % 6 + 1)) 2>/dev/null || sleep 0.3
      echo "end $VERDERER_STEP_NAME $VERDERER_ATTEMPT" >> "$DIARY/diary"
"""


def layered(diary: Path) -> str:
    """200 steps in 20 layers of 10, each needing two of the layer before."""
    lines = ["metadata: {name: storm}", "steps:"]
    for layer in range(LAYERS):
        for i in range(WIDTH):
            needs = [f"s{layer - 1}-{j % WIDTH}" for j in (i, i + 1)] if layer else []
            lines += [
                f"  - name: s{layer}-{i}",
                f"    needs: [{', '.join(needs)}]",
                f"    env: {{DIARY: {diary}}}",
                "    resources: {requests: {cpu: 50m}}",
                "    retries: 20",
                f"    script: |{SCRIPT}",
            ]
    return "\n".join(lines)


def is_over(there: Platform, run: int) -> bool:
    try:
        (row,) = asyncio.run(rows(there.dsn, "SELECT state::text FROM runs WHERE id = $1", run))
    except Exception:  # noqa: BLE001 - PostgreSQL may be dead just now: that is the point
        return False
    return row["state"] in ("succeeded", "failed", "cancelled")


def test_a_storm_of_kills_loses_nothing_and_doubles_nothing(folder: Path) -> None:
    seed = random.randrange(10**6)
    print(f"seed {seed}")
    random.seed(seed)
    diary = folder / "diary"
    diary.mkdir(mode=0o777)
    with platform(folder / "data") as there:
        run = asyncio.run(submit(there.dsn, layered(diary)))
        killed: Counter[str] = Counter()
        until = time.monotonic() + KILLS_FOR_S
        while time.monotonic() < until and not is_over(there, run):
            victim = random.choice(["server", "scheduler", "agent", "step", "step", "postgres"])
            killed[victim] += there.kill(victim)
            time.sleep(random.uniform(0.3, 1.5))
        wait_for(lambda: is_over(there, run), 150, f"the run is over (killed {dict(killed)})")
        judge(there, run, diary / "diary", killed)


def judge(there: Platform, run: int, diary: Path, killed: Counter[str]) -> None:
    asyncio.run(check_rows(there.dsn))
    written = [tuple(line.split()) for line in diary.read_text().splitlines()]
    begun = Counter((name, number) for what, name, number in written if what == "start")
    assert not [line for line in written if line[0] == "overlap"]
    assert {key: n for key, n in begun.items() if n > 1} == {}, "an attempt started twice"
    ended = {(name, number) for what, name, number in written if what == "end"}
    told = asyncio.run(
        rows(
            there.dsn,
            "SELECT s.name, a.number, a.state::text, a.cause::text, s.state::text AS step"
            "  FROM steps s JOIN attempts a ON a.step_id = s.id WHERE s.run_id = $1",
            run,
        )
    )
    for row in told:
        key = (str(row["name"]), str(row["number"]))
        if row["state"] == "succeeded":
            assert key in ended, f"{key} succeeded without having ended"
        else:
            assert row["cause"] in ("signal", "lost", "start", "output"), row
    assert {str(row["step"]) for row in told} == {"succeeded"}
    assert len({row["name"] for row in told}) == LAYERS * WIDTH
    assert killed.total() >= 5


def test_a_second_scheduler_takes_over_within_five_seconds(folder: Path) -> None:
    with platform(folder / "data") as there:
        there.start_scheduler()
        leader = "SELECT holder, epoch FROM leases WHERE name = 'placement' AND expires_at > now()"
        wait_for(lambda: bool(asyncio.run(rows(there.dsn, leader))), 20, "somebody leads")
        (before,) = asyncio.run(rows(there.dsn, leader))
        pid = int(str(before["holder"]).split("-")[-2])
        (first,) = [p for p in (*there.role("scheduler"), *there.extra) if p.pid == pid]
        first.kill()
        killed = time.monotonic()
        document = "metadata: {name: x}\nsteps:\n- {name: a, command: ['true']}\n"
        run = asyncio.run(submit(there.dsn, document))
        wait_for(lambda: is_over(there, run), 20, "the run is over")
        took = time.monotonic() - killed
        (after,) = asyncio.run(rows(there.dsn, leader))
        assert int(str(after["epoch"])) > int(str(before["epoch"]))
        assert took < 5 + 3, f"{took:.1f} s until the run was over"
        asyncio.run(check_rows(there.dsn))


def test_an_agent_that_is_cut_off_goes_on_and_tells_later(folder: Path) -> None:
    document = "metadata: {name: x}\nsteps:\n- {name: a, script: 'sleep 2; echo done'}\n"
    with platform(folder / "data") as there:
        run = asyncio.run(submit(there.dsn, document))
        running = "SELECT 1 FROM attempts WHERE state = 'running'"
        wait_for(lambda: bool(asyncio.run(rows(there.dsn, running))), 20, "the step runs")
        (server,) = there.role("server")
        server.suspend()
        time.sleep(4)  # the step ends meanwhile, and nobody can be told
        server.resume()
        wait_for(lambda: is_over(there, run), 40, "the run is over")
        (row,) = asyncio.run(
            rows(there.dsn, "SELECT state::text, started_at, ended_at FROM attempts")
        )
        assert row["state"] == "succeeded"
        asyncio.run(check_rows(there.dsn))
