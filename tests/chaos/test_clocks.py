"""Wall clocks that jump: leases, timeouts and logs go on as if nothing had happened."""

from __future__ import annotations

import asyncio
import os
import random
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.chaos.platform import check_rows, platform, rows, submit, wait_for
from tests.chaos.test_kills import is_over

pytestmark = [pytest.mark.chaos, pytest.mark.timeout(300), pytest.mark.xdist_group("chaos")]

HOUR, YEAR = 3600, 365 * 86_400
JUMPS = (HOUR, -HOUR, YEAR, 0, -YEAR, 90, -90, 0)
STEPS = 24
DOCUMENT = """
metadata: {name: jumping}
steps:
%s
"""
STEP = """
  - name: s%d
    needs: [%s]
    timeout: 1m
    outputs: {number: out}
    script: |
      mkdir out
      echo %d > out/number
      for i in 1 2 3 4 5; do echo "line $i"; sleep 0.1; done
"""


@pytest.fixture
def jumping(folder: Path) -> dict[str, str]:
    """The environment of processes whose wall clock we hold; their offset is in `folder/offset`."""
    compiler = shutil.which("cc")
    if compiler is None or sys.platform != "linux":
        pytest.skip("NOT TESTED with clocks that jump: no C compiler to make one with")
    library = folder / "clock.so"
    source = Path(__file__).with_name("clock.c")
    command = [compiler, "-shared", "-fPIC", "-O1", "-o", str(library), str(source), "-ldl"]
    subprocess.run(command, check=True)
    set_clock(folder, 0)
    return os.environ | {
        "LD_PRELOAD": str(library),
        "CLOCK_OFFSET_FILE": str(folder / "offset"),
    }


def set_clock(folder: Path, offset_s: int) -> None:
    """Move the wall clock of every process that was started with the environment above."""
    fresh = folder / "offset.new"
    fresh.write_text(str(offset_s))
    fresh.chmod(0o644)
    fresh.rename(folder / "offset")


def test_the_clock_that_we_hold_is_the_one_that_python_reads(
    jumping: dict[str, str], folder: Path
) -> None:
    set_clock(folder, YEAR)
    command = [sys.executable, "-c", "import time; print(time.time(), time.monotonic())"]
    said = subprocess.run(command, env=jumping, capture_output=True, text=True, check=True)
    wall, monotonic = map(float, said.stdout.split())
    assert wall - time.time() > YEAR - 60
    assert abs(monotonic - time.monotonic()) < 60


def test_jumps_neither_end_nor_repeat_nor_time_out_anything(
    jumping: dict[str, str], folder: Path
) -> None:
    steps = [STEP % (i, f"s{i - 4}" if i >= 4 else "", i) for i in range(STEPS)]
    with platform(folder / "data", jumping) as there:
        run = asyncio.run(submit(there.dsn, DOCUMENT % "".join(steps)))
        jumped = 0
        while not is_over(there, run) and jumped < 100:
            set_clock(folder, JUMPS[jumped % len(JUMPS)] + random.randrange(5))
            jumped += 1
            time.sleep(0.4)
        assert jumped >= 5, "the clock jumped while it ran"
        wait_for(lambda: is_over(there, run), 120, "the run is over")
        told = asyncio.run(
            rows(
                there.dsn,
                "SELECT s.name, a.number, a.state::text, coalesce(a.cause::text, '') AS cause"
                "  FROM steps s JOIN attempts a ON a.step_id = s.id WHERE s.run_id = $1",
                run,
            )
        )
        assert {(one["number"], one["state"], one["cause"]) for one in told} == {
            (1, "succeeded", "exit")
        }, told
        assert len(told) == STEPS
        asyncio.run(check_rows(there.dsn))
