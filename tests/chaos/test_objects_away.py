"""The object store full, or away: output waits or is marked as missing, and the run still ends."""

from __future__ import annotations

import asyncio
import os
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.chaos.platform import Platform, check_rows, platform, wait_for
from tests.e2e.commands import Cli, clean_environment
from tests.objects import servers
from verderer.objects.bucket import BucketAdmin

pytestmark = [pytest.mark.chaos, pytest.mark.timeout(300), pytest.mark.xdist_group("chaos")]

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


def test_a_store_that_is_away_ends_nothing_and_loses_nothing(folder: Path) -> None:
    if servers.versitygw_binary() is None:
        pytest.skip("NOT TESTED with an S3 server that goes away: no versitygw binary on PATH")
    (folder / "s3").mkdir()
    with servers.versitygw(folder / "s3") as s3:
        config = s3.config("s3://away")
        asyncio.run(BucketAdmin(config).create())
        environment = clean_environment(folder / "home") | {
            "VERDERER_OBJECTS_URL": "s3://away",
            "VERDERER_OBJECTS_ENDPOINT": s3.endpoint,
            "VERDERER_OBJECTS_ACCESS_KEY": servers.ACCESS_KEY,
            "VERDERER_OBJECTS_SECRET_KEY": servers.SECRET_KEY,
        }
        with platform(folder / "data", environment) as there:
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
