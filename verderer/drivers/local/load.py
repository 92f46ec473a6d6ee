"""How much cpu and memory this process may use and how busy they are, by /proc and cgroups."""

from __future__ import annotations

import os
from pathlib import Path

_UNLIMITED_V1 = 1 << 62
"""Version 1 writes "no limit" as a number near 2**63."""


class CpuMeter:
    """Busy share of all cores between one call and the next."""

    def __init__(self, stat: Path = Path("/proc/stat")) -> None:
        self._stat = stat
        self._last: tuple[int, int] | None = None

    def load(self) -> float | None:
        """0 to 1; None the first time, and when no time has passed."""
        now = parse_cpu_times(_read(self._stat))
        last, self._last = self._last, now
        if now is None or last is None or now[1] <= last[1]:
            return None
        return min(1.0, max(0.0, (now[0] - last[0]) / (now[1] - last[1])))


def parse_cpu_times(stat: str) -> tuple[int, int] | None:
    """(busy, all) clock ticks of all cores since boot, from the text of /proc/stat."""
    fields = stat.partition("\n")[0].split()
    if len(fields) < 5 or fields[0] != "cpu" or not all(f.isdigit() for f in fields[1:]):
        return None
    # user nice system idle iowait irq softirq steal; guest times are part of user already.
    times = [int(field) for field in fields[1:9]]
    idle = times[3] + (times[4] if len(times) > 4 else 0)
    return sum(times) - idle, sum(times)


def cpu_milli(own: Path | None = None, *, own_v1: Path | None = None) -> int:
    """Thousandths of a core that this process may use: affinity, then cgroup quotas above it."""
    cores = len(os.sched_getaffinity(0)) * 1000
    for directory in _upwards(own):
        quota, _, period = _read(directory / "cpu.max").strip().partition(" ")
        if quota.isdigit() and period.isdigit() and int(period):
            cores = min(cores, int(quota) * 1000 // int(period))
    for directory in _upwards(own_v1):
        quota = _read(directory / "cpu.cfs_quota_us").strip()
        period = _read(directory / "cpu.cfs_period_us").strip()
        if quota.isdigit() and period.isdigit() and int(period):
            cores = min(cores, int(quota) * 1000 // int(period))
    return cores


def memory_bytes(own: Path | None = None, *, own_v1: Path | None = None) -> tuple[int, int]:
    """(total, free) bytes: the machine's, within what the cgroups above us allow."""
    info = parse_meminfo(_read(Path("/proc/meminfo")))
    total, free = info.get("MemTotal", 0), info.get("MemAvailable", 0)
    files = [(d / "memory.max", d / "memory.current") for d in _upwards(own)]
    files += [(d / "memory.limit_in_bytes", d / "memory.usage_in_bytes") for d in _upwards(own_v1)]
    for limit_file, usage_file in files:
        limit, usage = _read(limit_file).strip(), _read(usage_file).strip()
        if limit.isdigit() and int(limit) < _UNLIMITED_V1:
            total = min(total, int(limit))
            free = min(free, max(0, int(limit) - int(usage or 0)))
    return total, free


def parse_meminfo(text: str) -> dict[str, int]:
    """Bytes by name, from the text of /proc/meminfo."""
    found = {}
    for line in text.splitlines():
        name, _, rest = line.partition(":")
        amount = rest.split()
        if amount and amount[0].isdigit():
            found[name] = int(amount[0]) * (1024 if amount[1:] == ["kB"] else 1)
    return found


def _upwards(directory: Path | None) -> list[Path]:
    """The directory and all above it that are still in the cgroup tree."""
    if directory is None:
        return []
    chain = [directory, *directory.parents]
    return [d for d in chain if (d / "cgroup.procs").exists()]


def _read(path: Path) -> str:
    try:
        return path.read_text(errors="replace")
    except OSError:
        return ""
