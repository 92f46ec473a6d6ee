"""The object store full, or away: output waits or is marked as missing, and the run still ends."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from tests.chaos.platform import Platform, check_rows, platform, wait_for
from tests.e2e.commands import Cli, clean_environment
from tests.objects import servers
from verderer.objects.bucket import BucketAdmin

pytestmark = [pytest.mark.chaos, pytest.mark.timeout(300), pytest.mark.xdist_group("chaos")]

LIMIT, WRITTEN = 1 << 20, 60_000
# Nothing that a compressor could make small.
CHATTY = """
metadata: {name: chatty, project: demo}
steps:
  - name: talk
    outputs: {sum: out}
    script: |
      #!/usr/bin/env python3
      import os, hashlib
      digest = hashlib.sha256()
      for number in range(%d):
          line = f"{number:06d} {os.urandom(120).hex()}\\n"
          digest.update(line.encode())
          print(line, end="", flush=True)
      os.mkdir("out")
      open("out/sum", "w").write(digest.hexdigest())
"""
SLOW = """
metadata: {name: slow, project: demo}
steps:
  - name: talk
    outputs: {word: out}
    script: |
      for i in 1 2 3 4 5 6 7 8; do echo "line $i"; sleep 0.3; done
      mkdir out; echo done > out/word
"""


def logged_in(there: Platform, home: Path) -> Cli:
    cli = Cli(home)
    cli.log_in(there.url, there.one_time_password())
    return cli


@pytest.fixture
def small_disk(folder: Path) -> Iterator[Path]:
    """A disk of two megabytes."""
    place = folder / "small"
    place.mkdir()
    made = os.geteuid() == 0 and _mount(place, "size=2m")
    if not made:
        pytest.skip("NOT TESTED with a full disk: no right to mount a small one")
    yield place
    subprocess.run(["umount", "-l", str(place)], check=False)


def _mount(place: Path, options: str) -> bool:
    command = ["mount", "-t", "tmpfs", "-o", options, "tmpfs", str(place)]
    return subprocess.run(command, capture_output=True, check=False).returncode == 0


def test_output_waits_for_room_and_is_whole_in_the_end(small_disk: Path, folder: Path) -> None:
    environment = clean_environment(folder / "home")
    environment["VERDERER_OBJECTS_URL"] = str(small_disk / "objects")
    with platform(folder / "data", environment) as there:
        cli = logged_in(there, folder / "home")
        run = cli.submit(folder, CHATTY % 20_000)  # 5 MB
        wait_for(lambda: _full(small_disk), 60, "the disk is full")
        time.sleep(2.0)
        subprocess.run(["mount", "-o", "remount,size=64m", str(small_disk)], check=True)
        text = cli("logs", "-f", f"{run}/talk")
        assert cli.state(run) == "succeeded"
        marked = [line for line in text.splitlines() if line.startswith("[")]
        assert not marked
        assert [int(line.split()[0]) for line in text.splitlines()] == list(range(20_000))
        asyncio.run(check_rows(there.dsn))


def _full(place: Path) -> bool:
    left = os.statvfs(place)
    return left.f_bavail * left.f_frsize < 600_000


@contextmanager
def over_s3(folder: Path, **settings: str) -> Iterator[tuple[servers.Server, Platform]]:
    """A platform over a real S3 server that can be paused."""
    if servers.versitygw_binary() is None:
        pytest.skip("NOT TESTED with an S3 server that goes away: no versitygw binary on PATH")
    (folder / "s3").mkdir()
    with servers.versitygw(folder / "s3") as s3:
        asyncio.run(BucketAdmin(s3.config("s3://away")).create())
        environment = clean_environment(folder / "home") | {
            "VERDERER_OBJECTS_URL": "s3://away",
            "VERDERER_OBJECTS_ENDPOINT": s3.endpoint,
            "VERDERER_OBJECTS_ACCESS_KEY": servers.ACCESS_KEY,
            "VERDERER_OBJECTS_SECRET_KEY": servers.SECRET_KEY,
            **settings,
        }
        with platform(folder / "data", environment) as there:
            yield s3, there


def test_a_store_that_is_away_ends_nothing_and_loses_nothing(folder: Path) -> None:
    with over_s3(folder) as (s3, there):
        cli = logged_in(there, folder / "home")
        run = cli.submit(folder, SLOW)
        wait_for(lambda: bool(there.attempts()), 60, "the step runs")
        s3.pause()
        wait_for(lambda: not there.attempts(), 60, "its program is over")
        time.sleep(1.0)
        assert cli.state(run) == "running", "its outputs are not safe yet"
        s3.resume()
        cli("watch", run)
        lines = cli("logs", f"{run}/talk").splitlines()
        assert lines == [f"line {i}" for i in range(1, 9)]
        asyncio.run(check_rows(there.dsn))


def test_what_waits_is_bounded_and_what_is_dropped_is_marked(folder: Path) -> None:
    with over_s3(folder, VERDERER_AGENT_SPOOL_LIMIT_BYTES=str(LIMIT)) as (s3, there):
        cli = logged_in(there, folder / "home")
        s3.pause()
        run = cli.submit(folder, CHATTY % WRITTEN)  # far more than may wait
        largest, until = 0, time.monotonic() + 120
        while not any((there.data / "local").rglob("out/sum")):
            largest = max(largest, _size(there.data / "local"), _size(there.data / "agent"))
            assert time.monotonic() < until, "a store that is away must not hold a program for good"
            time.sleep(0.2)
        assert LIMIT / 2 < largest < 3 * LIMIT
        assert away_says_the_doctor(there, folder / "home")
        s3.resume()
        cli("watch", run)
        assert cli.state(run) == "succeeded"
        lines = cli("logs", f"{run}/talk").splitlines()
        numbers = [int(line.split()[0]) for line in lines if line[:1].isdigit()]
        gaps = [line for line in lines if not line[:1].isdigit()]
        assert gaps, "what is missing is said"
        assert 0 < len(numbers) < WRITTEN
        assert numbers == sorted(set(numbers))
        assert "bytes of output are missing here: spool full" in gaps[0]
        asyncio.run(check_rows(there.dsn))


def away_says_the_doctor(there: Platform, home: Path) -> bool:
    """Whether a look at everything names the object store."""
    doctor = Cli(home)
    doctor.environment = {**there.environment, "NO_COLOR": "1"}
    done = doctor.attempt("doctor", "--server", "--data-dir", str(there.data), "-o", "json")
    found = {one["what"]: one for one in json.loads(done.stdout)}
    return done.returncode == 1 and found["object store"]["verdict"] == "fail"


def _size(folder: Path) -> int:
    total = 0
    for path in folder.rglob("*"):
        with suppress(FileNotFoundError):  # whatever was sent is removed meanwhile
            total += path.stat().st_size if path.is_file() else 0
    return total
