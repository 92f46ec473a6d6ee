"""The `postgres` role as the supervisor runs it."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from verderer.cli.up.role import READY_VARIABLE, REFUSED

DEADLINE_S = 30.0


class Role:
    """A running `verderer postgres` that has said that it is ready."""

    def __init__(self, data_dir: Path) -> None:
        hear, say = os.pipe()
        self.process = subprocess.Popen(
            [sys.executable, "-P", "-m", "verderer.cli.main", "postgres"],
            env={
                **os.environ,
                READY_VARIABLE: str(say),
                "VERDERER_DATA_DIR": str(data_dir),
            },
            pass_fds=(say,),
            stderr=subprocess.PIPE,
            text=True,
        )
        os.close(say)
        try:
            self.ready = os.read(hear, 64)
        finally:
            os.close(hear)
        self.server = next(
            child
            for child in psutil.Process(self.process.pid).children()
            if child.name().startswith("postgres")
        )

    def log(self) -> list[dict[str, object]]:
        _, errors = self.process.communicate(timeout=DEADLINE_S)
        return [json.loads(line) for line in errors.splitlines()]


@pytest.fixture
def role(folder: Path) -> Iterator[Role]:
    made = Role(folder)
    yield made
    made.process.kill()
    if made.process.stderr and not made.process.stderr.closed:
        made.process.communicate()


def gone(process: psutil.Process) -> bool:
    deadline = time.monotonic() + DEADLINE_S
    while time.monotonic() < deadline:
        try:
            if process.status() == psutil.STATUS_ZOMBIE:
                return True
        except psutil.NoSuchProcess:
            return True
        time.sleep(0.02)
    return False


def test_it_says_when_it_is_ready_and_ends_cleanly_when_asked(role: Role) -> None:
    assert role.ready == b"ready\n"
    role.process.send_signal(signal.SIGTERM)
    events = [line["event"] for line in role.log()]
    assert role.process.returncode == 0
    assert events == ["database is ready"], "an ordinary start and stop are not news"
    assert gone(role.server)


def test_it_ends_when_its_server_does_so_that_it_is_started_again(role: Role) -> None:
    role.server.kill()
    assert role.log()[-1]["event"] == "the database server ended by itself"
    assert role.process.returncode == 1


@pytest.mark.skipif(sys.platform != "linux", reason="the kernel's tie is Linux's")
def test_killed_it_takes_the_server_along(role: Role) -> None:
    role.process.kill()
    assert gone(role.server)


def test_it_refuses_to_run_beside_a_database_elsewhere(folder: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-P", "-m", "verderer.cli.main", "postgres", "--data-dir", str(folder)],
        env={**os.environ, "VERDERER_DATABASE_URL": "postgresql://u:hunter2@db/v"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == REFUSED
    assert "database.url is set" in done.stderr
    assert "hunter2" not in done.stderr
