"""On what it was measured."""

from __future__ import annotations

import os
import platform
from dataclasses import asdict, dataclass
from pathlib import Path

from verderer.store.database import Tx


@dataclass(frozen=True, slots=True, kw_only=True)
class Machine:
    """Everything without which a figure means nothing."""

    cores: int
    model: str
    memory_gib: float
    kernel: str
    python: str
    postgres: str
    fsync: str
    synchronous_commit: str
    full_page_writes: str
    shared_buffers: str

    def lines(self) -> list[str]:
        return [f"{name.replace('_', ' ')}: {value}" for name, value in asdict(self).items()]


async def describe(connection: Tx) -> Machine:
    """This machine and the server behind the connection."""
    settings = {
        name: str(await connection.fetchval("SELECT current_setting($1)", name))
        for name in (
            "server_version", "fsync", "synchronous_commit", "full_page_writes", "shared_buffers"
        )
    }  # fmt: skip
    return Machine(
        cores=len(os.sched_getaffinity(0)),
        model=_first("/proc/cpuinfo", "model name"),
        memory_gib=round(int(_first("/proc/meminfo", "MemTotal").split()[0]) / 2**20, 1),
        kernel=platform.release(),
        python=platform.python_version(),
        postgres=settings["server_version"],
        fsync=settings["fsync"],
        synchronous_commit=settings["synchronous_commit"],
        full_page_writes=settings["full_page_writes"],
        shared_buffers=settings["shared_buffers"],
    )


def load_average() -> float:
    """Runnable processes over the last minute."""
    return os.getloadavg()[0]


def _first(path: str, key: str) -> str:
    for line in Path(path).read_text().splitlines():
        if line.startswith(key):
            return line.partition(":")[2].strip()
    return "unknown"
