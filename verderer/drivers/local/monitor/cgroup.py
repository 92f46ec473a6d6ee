"""The cgroup of one replica: limits, membership, what the OOM killer did, and the last kill."""

from __future__ import annotations

import os
import signal
import time

from verderer.drivers.local.monitor import kernel

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

_PERIOD_US = 100_000
_LEAST_QUOTA_US = 1_000
_REMOVE_TRIES = 100
_REMOVE_PAUSE_S = 0.01


class Group:
    """Directories of one group below `bases`, one per controller (version 1) or one in all.

    `bases` maps a controller to the directory below which groups may be made. Without any, every
    method does nothing, and `limited` says so.
    """

    def __init__(self, version: int, bases: dict[str, str], name: str) -> None:
        self.version = version
        self.paths = {controller: os.path.join(base, name) for controller, base in bases.items()}
        self._born_inside = False

    def create(self, *, cpu: int, cpu_share: int, memory: int, pids: int) -> None:
        """Make the group. `cpu` and `cpu_share` in milli-cores, `memory` in bytes; 0 is no limit.

        Raises:
            OSError: the kernel refuses; what was made so far is for `remove`.
        """
        if self.version == 1:
            self._keep_needed({"cpu": cpu or cpu_share, "memory": memory, "pids": 1})
        for path in self._directories():
            os.makedirs(path, mode=0o755, exist_ok=True)
        settings = _settings_v1 if self.version == 1 else _settings_v2
        for controller, file, value, needed in settings(cpu, cpu_share, memory, pids):
            if controller not in self.paths:
                continue
            try:
                _write(os.path.join(self.paths[controller], file), value)
            except OSError:
                if needed:
                    raise

    def fork(self) -> int:
        """Fork with the child inside the group when the kernel can do so; see `join`."""
        if self.version == 2 and self.paths:
            self._born_inside = True
            try:
                return kernel.fork_into(self._directories()[0])
            except OSError:  # an older kernel or a container's filter: `join` moves the child
                self._born_inside = False
        return os.fork()

    def join(self) -> None:
        """Called in the child, which has one thread: move it into the group."""
        for path in self._directories():
            if self.version == 1:
                # `tasks`, not `cgroup.procs`: moving only oneself needs no global lock (0.4 ms
                # instead of 11 ms), and one thread is all that there is.
                _write(os.path.join(path, "tasks"), "0")
            elif not self._born_inside:
                _write(os.path.join(path, "cgroup.procs"), "0")

    def kill(self) -> bool:
        """SIGKILL everything in the group; whether there was anything."""
        found = False
        for path in self._directories():
            pids = _members(path)
            if not pids:
                continue
            found = True
            try:
                _write(os.path.join(path, "cgroup.kill"), "1")
            except OSError:  # version 1, or a kernel before 5.14
                for pid in pids:
                    try:
                        os.kill(pid, signal.SIGKILL)
                    except ProcessLookupError:
                        pass
        return found

    def oom_kills(self) -> int:
        """How many processes of the group were killed for its memory limit."""
        path = self.paths.get("memory")
        if path is None:
            return 0
        file = "memory.oom_control" if self.version == 1 else "memory.events"
        for line in _read(os.path.join(path, file)).splitlines():
            name, _, value = line.partition(" ")
            if name == "oom_kill" and value.isdigit():
                return int(value)
        failures = _read(os.path.join(path, "memory.failcnt")).strip()  # before Linux 4.13
        return int(failures) if failures.isdigit() else 0

    def remove(self) -> bool:
        """Remove the group once it is empty; False when something in it will not die."""
        removed = [_remove(path) for path in self._directories()]
        return all(removed)

    def _directories(self) -> list[str]:
        return list(dict.fromkeys(self.paths.values()))

    def _keep_needed(self, needed: dict[str, int]) -> None:
        """Version 1 pays for each controller at every start: leave out what limits nothing."""
        self.paths = {name: path for name, path in self.paths.items() if needed.get(name, 1)}


def _settings_v1(
    cpu: int, share: int, memory: int, pids: int
) -> Iterator[tuple[str, str, str, bool]]:
    if cpu:
        yield "cpu", "cpu.cfs_period_us", str(_PERIOD_US), True
        yield "cpu", "cpu.cfs_quota_us", str(_quota_us(cpu)), True
    if share:
        yield "cpu", "cpu.shares", str(max(2, share * 1024 // 1000)), False
    if memory:
        yield "memory", "memory.limit_in_bytes", str(memory), True
        yield "memory", "memory.memsw.limit_in_bytes", str(memory), False
    yield "pids", "pids.max", str(pids), True


def _settings_v2(
    cpu: int, share: int, memory: int, pids: int
) -> Iterator[tuple[str, str, str, bool]]:
    if cpu:
        yield "cpu", "cpu.max", f"{_quota_us(cpu)} {_PERIOD_US}", True
    if share:
        shares = min(max(2, share * 1024 // 1000), 262_144)
        yield "cpu", "cpu.weight", str(1 + (shares - 2) * 9_999 // 262_142), False
    if memory:
        yield "memory", "memory.max", str(memory), True
        yield "memory", "memory.swap.max", "0", False
        yield "memory", "memory.oom.group", "1", False
    yield "pids", "pids.max", str(pids), True


def _quota_us(milli: int) -> int:
    return max(_LEAST_QUOTA_US, milli * _PERIOD_US // 1000)


def _members(path: str) -> list[int]:
    return [int(pid) for pid in _read(os.path.join(path, "cgroup.procs")).split()]


def _remove(path: str) -> bool:
    for _ in range(_REMOVE_TRIES):
        try:
            os.rmdir(path)
        except FileNotFoundError:
            return True
        except OSError:  # what was killed is still leaving
            time.sleep(_REMOVE_PAUSE_S)
        else:
            return True
    return False


def _read(path: str) -> str:
    try:
        return kernel.read(path).decode("utf-8", "replace")
    except OSError:
        return ""


def _write(path: str, value: str) -> None:
    fd = os.open(path, os.O_WRONLY | os.O_CLOEXEC)
    try:
        os.write(fd, value.encode())
    finally:
        os.close(fd)
