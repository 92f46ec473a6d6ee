"""A whole platform in processes of its own, and the means to hurt it."""

from __future__ import annotations

import asyncio
import os
import random
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path

import psutil

from tests.rig.invariants import BROKEN
from verderer.core.model.actor import Actor, ActorKind
from verderer.store.database import Database
from verderer.store.embedded.launcher import dsn_at
from verderer.store.wakeups import Wakeups
from verderer.usecases.context import Context
from verderer.usecases.submit_run import Submission, Submitter

ADMIN = Actor(kind=ActorKind.USER, name="chaos@example.org", platform_admin=True)
ROLES = ("server", "scheduler", "agent", "postgres")


class Platform:
    """`verderer up` over a data folder; it may be stopped and started again on it."""

    def __init__(
        self, data: Path, port: int, *, environment: Mapping[str, str] | None = None
    ) -> None:
        self.data = data
        self.port = port
        self.url = f"http://127.0.0.1:{port}"
        self.log = data / "up.log"
        self.extra: list[subprocess.Popen[bytes]] = []
        self.environment = dict(os.environ if environment is None else environment)
        data.mkdir(parents=True, exist_ok=True)
        self.start()

    def start(self) -> None:
        """Start it, with a log of its own."""
        command = [sys.executable, "-P", "-m", "verderer.cli.main", "up"]
        command += ["--data-dir", str(self.data), "--port", str(self.port)]
        with self.log.open("wb") as out:
            self.up = subprocess.Popen(
                command, stdout=out, stderr=subprocess.STDOUT, env=self.environment
            )

    @property
    def dsn(self) -> str:
        return dsn_at(self.data / "postgres")

    def wait_ready(self, within_s: float = 90.0) -> None:
        """Wait until it has said all that it says when it is ready."""

        def ready() -> bool:
            assert self.up.poll() is None, self.log.read_text()
            return b"Ctrl-C stops it" in self.log.read_bytes()

        wait_for(ready, within_s, "the platform is ready")

    def stop(self) -> str:
        """Ctrl-C, and wait for its end; what it wrote."""
        self.up.send_signal(signal.SIGINT)
        assert self.up.wait(90) == 0, self.log.read_text()
        return self.log.read_text()

    def one_time_password(self) -> str:
        """What the very first start shows."""
        return self.log.read_text().partition("one-time password: ")[2].split()[0]

    def role(self, name: str) -> list[psutil.Process]:
        """The process of a role; of `postgres` the server itself."""
        found = []
        for child in psutil.Process(self.up.pid).children(recursive=True):
            with suppress(psutil.Error):
                words = child.cmdline()
                if name == "postgres":
                    if words and words[0].endswith("/postgres"):
                        found.append(child)
                elif words[-1:] == [name] and "verderer.cli.main" in words:
                    found.append(child)
        return found

    def attempts(self) -> list[psutil.Process]:
        """The programs of steps that run now."""
        marker = str(self.data / "local")
        found = []
        for process in psutil.process_iter(["cmdline"]):
            words = process.info["cmdline"] or []
            # A shell by its own name: its path, and ours, may hold anything.
            if any(marker in word for word in words) and Path(words[0]).name.endswith("sh"):
                found.append(process)
        return found

    def kill(self, name: str) -> bool:
        """`kill -9` one process of a kind; False when there is none just now."""
        there = self.attempts() if name == "step" else self.role(name)
        for process in random.sample(there, min(1, len(there))):
            with suppress(psutil.Error):
                process.kill()
                return True
        return False

    def start_scheduler(self) -> subprocess.Popen[bytes]:
        """One more scheduler over the same database."""
        command = [sys.executable, "-m", "verderer.cli.main", "scheduler"]
        with (self.data / "scheduler2.log").open("wb") as out:
            process = subprocess.Popen(
                [*command, "--data-dir", str(self.data)], stdout=out, stderr=subprocess.STDOUT
            )
        self.extra.append(process)
        return process

    def end(self) -> None:
        for process in [*self.extra, self.up]:
            if process.poll() is None:
                process.send_signal(signal.SIGTERM)
        for process in [*self.extra, self.up]:
            try:
                process.wait(60)
            except subprocess.TimeoutExpired:
                process.kill()
        for left in self.attempts():
            with suppress(psutil.Error):
                left.kill()


@contextmanager
def platform(data: Path, environment: Mapping[str, str] | None = None) -> Iterator[Platform]:
    """Start one, wait until it is ready, and take it down with everything that it started."""
    started = Platform(data, free_port(), environment=environment)
    try:
        started.wait_ready()
        yield started
    finally:
        started.end()


def free_port() -> int:
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return int(s.getsockname()[1])


def wait_for(condition: Callable[[], bool], within_s: float, what: str) -> None:
    deadline = time.monotonic() + within_s
    while not condition():
        assert time.monotonic() < deadline, f"not within {within_s:.0f} s: {what}"
        time.sleep(0.05)


async def submit(dsn: str, document: str) -> int:
    """Commit a run beside the server, as one more server would."""
    db = await Database.open(dsn, size=2)
    wakeups = Wakeups(db)
    context = Context(
        db=db,
        wakeups=wakeups,
        clock=lambda: datetime.now(UTC),
        chance=lambda: int.from_bytes(os.urandom(8), "big"),
        key=b"k" * 32,
        public_url="http://127.0.0.1",
    )
    await wakeups.start()
    try:
        submission = Submission(document=document.encode(), project="demo")
        made = await Submitter(context).submit(ADMIN, submission)
        await asyncio.sleep(0.2)  # the news leaves this process
        return made.run
    finally:
        await wakeups.stop()
        await db.close()


async def rows(dsn: str, query: str, *arguments: object) -> list[dict[str, object]]:
    db = await Database.open(dsn, size=1)
    try:
        async with db.reading() as tx:
            return [dict(row) for row in await tx.fetch(query, *arguments)]
    finally:
        await db.close()


async def check_rows(dsn: str) -> None:
    db = await Database.open(dsn, size=1)
    try:
        async with db.reading() as tx:
            for what, query in BROKEN.items():
                assert await tx.fetch(query) == [], what
    finally:
        await db.close()
