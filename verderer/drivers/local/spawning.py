"""The agent's hold on the spawner: start it, hand it keys, start another when it dies."""

from __future__ import annotations

import asyncio
import contextlib
import os
import socket
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

from verderer.core.errors import Fault

_PACKAGES = Path(__file__).resolve().parents[3]
_BOOTSTRAP = (
    "import sys; sys.path.append(sys.argv[1])\n"
    "from verderer.drivers.local.monitor.spawner import main\n"
    "main(int(sys.argv[2]), sys.argv[3])"
)
_LOG_BYTES = 1 << 20


class Spawner:
    """A bare interpreter without site-packages; it ends when we close our end of the socket."""

    def __init__(self, root: Path, log: Path, *, died: Callable[[], None]) -> None:
        self._root = root
        self._log = log
        self._died = died
        self._process: subprocess.Popen[bytes] | None = None
        self._socket: socket.socket | None = None

    @property
    def pid(self) -> int | None:
        """Of the process, while there is one."""
        return self._process.pid if self._process is not None else None

    def start(self) -> None:
        """Start it unless it runs.

        Raises:
            Fault: no process can be made.
        """
        if self._process is not None:
            return
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        try:
            self._process = self._popen(theirs.fileno())
        except OSError as problem:
            ours.close()
            raise Fault(f"the spawner cannot be started: {problem}") from problem
        finally:
            theirs.close()
        ours.setblocking(False)
        self._socket = ours
        asyncio.get_running_loop().add_reader(ours.fileno(), self._ended)

    def send(self, key: str) -> None:
        """Have the attempt's monitor forked.

        Raises:
            Fault: the spawner is dead or has more to do than it can; try again.
        """
        self.start()
        assert self._socket is not None  # noqa: S101 - `start` made it
        try:
            self._socket.send(key.encode("ascii"))
        except BlockingIOError as problem:
            raise Fault("the spawner is busy", retry_after_s=0.1) from problem
        except OSError as problem:
            self._ended()
            raise Fault("the spawner died", retry_after_s=0.1) from problem

    def close(self) -> None:
        """Let it end; the monitors stay."""
        if self._socket is not None:
            asyncio.get_running_loop().remove_reader(self._socket.fileno())
            self._socket.close()
        if self._process is not None:
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._process.wait(timeout=5)
        self._socket = self._process = None

    def _ended(self) -> None:
        """The socket closed: it never says anything else."""
        if self._process is not None:
            self._process.kill()
        self.close()
        self._died()

    def _popen(self, channel: int) -> subprocess.Popen[bytes]:
        flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW | os.O_CLOEXEC
        log = os.open(self._log, flags, 0o600)
        try:
            if os.fstat(log).st_size > _LOG_BYTES:
                os.ftruncate(log, 0)
            return subprocess.Popen(
                [
                    *(sys.executable, "-I", "-S", "-E", "-c", _BOOTSTRAP),
                    *(str(_PACKAGES), str(channel), str(self._root)),
                ],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                pass_fds=(channel,),
                cwd="/",
                env={"LC_ALL": "C.UTF-8"},
                start_new_session=True,
            )
        finally:
            os.close(log)
