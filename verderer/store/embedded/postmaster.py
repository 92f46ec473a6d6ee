"""What `postmaster.pid` says, and whether the process that it names is really our server."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from verderer.core.errors import Fault

_PID_LINE, _STATUS_LINE = 0, 7
_POLL_S = 0.02


@dataclass(frozen=True, slots=True)
class PidFile:
    """The lines of `postmaster.pid` that matter here."""

    pid: int
    status: str
    """`starting`, `ready`, `stopping`, `standby`, or empty while it is being written."""


def read(data: Path) -> PidFile | None:
    """Return what the file in `data` says; None if it is absent or half-written."""
    try:
        lines = (data / "postmaster.pid").read_text(encoding="utf-8").splitlines()
        pid = int(lines[_PID_LINE])
    except (FileNotFoundError, IndexError, ValueError):
        return None
    return PidFile(abs(pid), lines[_STATUS_LINE].strip() if len(lines) > _STATUS_LINE else "")


def clear(data: Path, run: Path, *, within_s: float) -> None:
    """Make the folders free for a new server: end an orphan, and remove files that name nobody.

    The caller holds the launcher's lock, so a server that still runs here has lost its launcher.
    PostgreSQL itself takes a zombie, or a stranger that got the same pid after a reboot, for a
    running server and would refuse to start for ever.

    Raises:
        Fault: the orphan did not end `within_s` seconds.
    """
    found = read(data)
    if found is not None and serves(found.pid, data):
        os.kill(found.pid, signal.SIGINT)
        if not wait_until(lambda: not serves(found.pid, data), within_s=within_s):
            raise Fault(
                f"PostgreSQL process {found.pid} was left over and does not stop",
                hint=f"stop it by hand: kill -INT {found.pid}",
            )
    # Backends of a dead server may live a moment longer. Removing the file is safe even then:
    # the shared memory's key comes from the data folder, and a new server refuses while they hold.
    (data / "postmaster.pid").unlink(missing_ok=True)
    for lock in run.glob(".s.PGSQL.*.lock"):
        lock.unlink(missing_ok=True)


def serves(pid: int, data: Path) -> bool:
    """Whether `pid` is a living PostgreSQL server on `data`: no zombie, no stranger."""
    process = Path("/proc", str(pid))
    if not Path("/proc/self").exists():
        return _serves_by_ps(pid, data)
    try:
        state = (process / "stat").read_text(encoding="utf-8").rpartition(")")[2].split()[0]
        program = (process / "exe").readlink().name
        folder = (process / "cwd").readlink()
    except OSError:
        return False
    # After an upgrade in place the kernel names the program "postgres (deleted)".
    return state not in "ZX" and program.startswith("postgres") and folder == data.resolve()


def _serves_by_ps(pid: int, data: Path) -> bool:
    """The same where there is no /proc (macOS)."""
    listed = subprocess.run(
        ["/bin/ps", "-o", "state=,command=", "-p", str(pid)],
        capture_output=True,
        text=True,
        check=False,
    ).stdout.strip()
    return bool(listed) and not listed.startswith("Z") and str(data) in listed


def wait_until(true: Callable[[], bool], *, within_s: float) -> bool:
    """Ask again and again until `true` answers yes; False when `within_s` seconds have passed."""
    deadline = time.monotonic() + within_s
    while not true():
        if time.monotonic() >= deadline:
            return False
        time.sleep(_POLL_S)
    return True
