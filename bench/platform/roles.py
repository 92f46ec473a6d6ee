"""Starts the product's own roles, each the very process that `verderer up` would start."""

from __future__ import annotations

import asyncio
import os
import socket
import sys
import time
from collections.abc import Awaitable, Callable
from pathlib import Path

from bench.platform.process import Process
from bench.platform.profiled import FOLDER
from verderer.cli.up.readiness import answers
from verderer.cli.up.role import READY_VARIABLE

_ROOT = Path(__file__).resolve().parents[2]


class Roles:
    """Processes by name, over one data folder."""

    def __init__(self, folder: Path, *, profile: Path | None = None) -> None:
        self.folder = folder
        self.port = free_port()
        self.running: dict[str, Process] = {}
        self.profile = profile
        self.logs = folder / "logs"
        self.logs.mkdir(parents=True, exist_ok=True)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def environment(self, **more: str) -> dict[str, str]:
        """What every role is given: ours without settings of somebody else's installation."""
        kept = {k: v for k, v in os.environ.items() if not k.startswith("VERDERER_")}
        given = {
            "PYTHONPATH": str(_ROOT),
            "VERDERER_DATA_DIR": str(self.folder / "data"),
            "VERDERER_SERVER_PORT": str(self.port),
            "VERDERER_LOG_FORMAT": "json",
            "VERDERER_LOG_LEVEL": "warning",
            "VERDERER_LOCAL_CLUSTER_ENABLED": "true",
        }
        return kept | given | more

    def start(self, role: str, name: str = "") -> Process:
        """Start a role; `name` tells two of one role apart."""
        return self.start_module(name or role, "verderer.cli.main", role)

    def start_module(self, name: str, module: str, *words: str, **environment: str) -> Process:
        """Start a module as a process of its own."""
        argv = [sys.executable, "-m", module, *words]
        given = self.environment(**environment)
        if self.profile is not None:
            given[FOLDER] = str(self.profile)
            argv[1:2] = ["-m", "bench.platform.profiled"]
        process = Process(name, argv, given, self.logs / f"{name}.log")
        self.running[name] = process
        return process

    async def start_postgres(self) -> Process:
        """The embedded server, with every safety that it has by default."""
        said, say = os.pipe()
        try:
            process = Process(
                "postgres",
                [sys.executable, "-m", "verderer.cli.main", "postgres"],
                self.environment(**{READY_VARIABLE: str(say), "VERDERER_LOG_LEVEL": "info"}),
                self.logs / "postgres.log",
                pass_fds=(say,),
            )
        finally:
            os.close(say)
        self.running["postgres"] = process
        heard = await asyncio.to_thread(os.read, said, 64)
        os.close(said)
        if not heard:
            process.wait(10)
            process.check()
        return process

    async def start_server(self) -> Process:
        """The server, answering."""
        process = self.start("server")
        await self.until(lambda: answers(f"{self.url}/readyz"), 60, process)
        return process

    async def until(
        self, ready: Callable[[], Awaitable[bool]], within_s: float, process: Process
    ) -> None:
        """Ask until the answer is yes; raise when the process ends or time runs out."""
        deadline = time.monotonic() + within_s
        while not await ready():
            process.check()
            if time.monotonic() > deadline:
                raise TimeoutError(f"{process.name} is not ready within {within_s:g} s")
            await asyncio.sleep(0.02)

    async def stop(self, *names: str) -> None:
        """Stop these, all at once, each in order."""
        ending = [self.running.pop(name) for name in names if name in self.running]
        await asyncio.gather(*(asyncio.to_thread(process.stop) for process in ending))

    async def stop_all(self) -> None:
        """PostgreSQL last."""
        await self.stop(*(name for name in self.running if name != "postgres"))
        await self.stop("postgres")


def free_port() -> int:
    """A port that nobody listens on now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
