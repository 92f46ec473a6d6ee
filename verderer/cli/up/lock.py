"""One `verderer up` for each data folder, and the way that `verderer down` finds it."""

from __future__ import annotations

import fcntl
import os
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from verderer.core.errors import Conflict, Fault

_NAME = "up.lock"
_POLL_S = 0.05
_TRIES = 5


@contextmanager
def hold(data_dir: Path) -> Iterator[None]:
    """Hold the folder while the body runs.

    The lock belongs to the open file, so a killed process cannot leave it behind; the file's
    text is the holder's process id.

    Raises:
        Conflict: another `verderer up` holds it.
    """
    lock = os.open(data_dir / _NAME, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        if not _takes(lock):
            raise Conflict(
                f"process {_holder(lock)} already runs Verderer on {data_dir}",
                hint="stop it with `verderer down`, or use another --data-dir",
                code="already_up",
            )
        os.ftruncate(lock, 0)
        os.pwrite(lock, str(os.getpid()).encode(), 0)
        yield
    finally:
        os.close(lock)


def running(data_dir: Path) -> int | None:
    """The process id of the `verderer up` that holds the folder, or None."""
    try:
        lock = os.open(data_dir / _NAME, os.O_RDWR | os.O_CLOEXEC)
    except FileNotFoundError:
        return None
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        pid = _holder(lock)
        return int(pid) if pid.isdigit() else None
    else:
        return None
    finally:
        os.close(lock)


def end(data_dir: Path, *, within_s: float) -> int | None:
    """Ask the holder to stop and wait until it has; its process id, or None if nothing ran.

    Raises:
        Fault: it still ran after `within_s` seconds.
    """
    pid = running(data_dir)
    if pid is None:
        return None
    os.kill(pid, signal.SIGTERM)
    deadline = time.monotonic() + within_s
    while running(data_dir) == pid:
        if time.monotonic() >= deadline:
            raise Fault(
                f"process {pid} has not stopped within {within_s:g} s",
                hint="a second `verderer down` stops it without waiting for its processes",
            )
        time.sleep(_POLL_S)
    return pid


def _takes(lock: int) -> bool:
    # `running` holds the lock for an instant while it looks: that is not another `up`.
    for _ in range(_TRIES):
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            time.sleep(_POLL_S)
        else:
            return True
    return False


def _holder(lock: int) -> str:
    return os.pread(lock, 32, 0).decode(errors="replace").strip() or "of unknown id"
