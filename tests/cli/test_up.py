"""The whole platform as a person starts it: `verderer up`, in processes of its own."""

from __future__ import annotations

import json
import os
import re
import signal
import socket
import subprocess
import sys
import threading
import time
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil
import pytest

DEADLINE_S = 60.0
VERDERER = [sys.executable, "-P", "-m", "verderer.cli.main"]


def until(true: Callable[[], bool]) -> None:
    deadline = time.monotonic() + DEADLINE_S
    while not true():
        assert time.monotonic() < deadline, "it never happened"
        time.sleep(0.05)


class Running:
    """One `verderer up`, with what it says collected as it comes."""

    def __init__(self, data_dir: Path, port: int) -> None:
        self.url = f"http://127.0.0.1:{port}"
        self.process = subprocess.Popen(
            [*VERDERER, "up", "--data-dir", str(data_dir), "--port", str(port)],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env={**os.environ, "VERDERER_LOG_FORMAT": "json"},
        )
        self.said: list[str] = []
        self.logged: list[str] = []
        self._readers = [
            threading.Thread(target=self._read, args=pair, daemon=True)
            for pair in ((self.process.stdout, self.said), (self.process.stderr, self.logged))
        ]
        for reader in self._readers:
            reader.start()

    @staticmethod
    def _read(pipe: Iterator[str], lines: list[str]) -> None:
        lines.extend(pipe)  # appends each line as it comes

    def text(self) -> str:
        return "".join(self.said)

    def becomes_ready(self) -> None:
        until(lambda: "is ready at" in self.text() or self.process.poll() is not None)
        assert self.process.poll() is None, "".join(self.logged)

    def child(self, role: str) -> psutil.Process | None:
        for process in psutil.Process(self.process.pid).children():
            try:
                if role in process.cmdline():
                    return process
            except psutil.Error:
                continue
        return None

    def answers(self) -> bool:
        try:
            with urllib.request.urlopen(f"{self.url}/readyz", timeout=2) as answer:
                return bool(answer.status == 200)
        except OSError:
            return False

    def ends(self) -> int:
        code = self.process.wait(DEADLINE_S)
        for reader in self._readers:
            reader.join(DEADLINE_S)
        return code


@pytest.fixture
def start(folder: Path) -> Iterator[Callable[[], Running]]:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    started: list[Running] = []

    def start_one() -> Running:
        started.append(Running(folder / "data", port))
        return started[-1]

    yield start_one
    for one in started:
        one.process.kill()
        one.ends()
        for pipe in (one.process.stdout, one.process.stderr):
            assert pipe is not None
            pipe.close()


def test_from_the_first_start_to_the_next(start: Callable[[], Running], folder: Path) -> None:
    first = start()
    first.becomes_ready()
    assert f"Verderer is ready at {first.url}" in first.text()
    until(lambda: "Ctrl-C" in first.text())
    assert re.search(r"First login: \S+@\S+  one-time password: \S{12,}", first.text())
    assert not (folder / "data" / "first-login").exists()
    assert first.answers()
    password = first.text().partition("password: ")[2].split()[0]
    first.process.send_signal(signal.SIGINT)
    assert first.ends() == 0
    assert "Stopped." in first.text()
    assert password not in "".join(first.logged)
    assert all(json.loads(line) for line in first.logged), "one stream, all of it JSON"

    second = start()
    second.becomes_ready()
    until(lambda: "Ctrl-C" in second.text())
    assert "First login" not in second.text()
    down = subprocess.run(
        [*VERDERER, "down", "--data-dir", str(folder / "data")],
        capture_output=True,
        text=True,
        check=True,
    )
    assert down.stdout == f"Stopped process {second.process.pid}.\n"
    assert second.ends() == 0


@pytest.mark.chaos
def test_each_process_may_be_killed(start: Callable[[], Running]) -> None:
    running = start()
    running.becomes_ready()
    for role in ("scheduler", "agent", "server", "postgres"):
        victim = running.child(role)
        assert victim is not None, role
        victim.kill()
        until(
            lambda role=role, old=victim.pid: (  # type: ignore[misc]
                (now := running.child(role)) is not None and now.pid != old
            )
        )
        until(running.answers)


def test_a_killed_up_does_not_stand_in_the_way_of_the_next(start: Callable[[], Running]) -> None:
    first = start()
    first.becomes_ready()
    family = psutil.Process(first.process.pid).children(recursive=True)
    first.process.kill()
    gone, alive = psutil.wait_procs(family, timeout=5)
    assert not [p for p in alive if p.status() != psutil.STATUS_ZOMBIE]
    assert gone or not alive
    start().becomes_ready()
