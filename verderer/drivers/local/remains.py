"""Finds and kills what an attempt started, when its monitor can no longer do it."""

from __future__ import annotations

import os
import signal
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from verderer.drivers.local.monitor import kernel
from verderer.drivers.local.monitor.cgroup import Group
from verderer.drivers.local.orders import ATTEMPT_HOME


def groups_of(order: Mapping[str, Any]) -> list[Group]:
    """The cgroups that the attempt's replicas may have."""
    place = order["cgroup"]
    return [
        Group(place["version"], place["bases"], f"{order['key']}.{rank}")
        for rank in range(len(order["replicas"]))
    ]


def kill_remains(order: Mapping[str, Any], monitor: int, home: str) -> bool:
    """SIGKILL what is left of the attempt; False once there is nothing.

    `monitor` is the id of the dead monitor: its session outlives it, and as long as one process
    is in it the id is not given to another. What left the session is known by its environment.
    """
    found = [group.kill() for group in groups_of(order)]
    mark = f"{ATTEMPT_HOME}={home}".encode()
    for pid in kernel.all_pids():
        session = kernel.session_of(pid)
        if session is None or pid == os.getpid():
            continue
        if session == monitor or _marked(pid, mark):
            found.append(True)
            _kill(pid)
    return any(found)


def remove_groups(order: Mapping[str, Any]) -> None:
    """Remove the attempt's cgroups, which are empty now."""
    for group in groups_of(order):
        group.remove()


def _marked(pid: int, mark: bytes) -> bool:
    try:
        return mark in Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
    except OSError:  # gone, or another user's and so not ours
        return False


def _kill(pid: int) -> None:
    try:
        os.kill(pid, signal.SIGKILL)
    except ProcessLookupError:
        pass
