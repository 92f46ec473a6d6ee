"""One of an attempt's programs, from its fork to its wait status and the last byte it wrote."""

from __future__ import annotations

import os
import signal
import time

from verderer.drivers.local.monitor import endings, kernel
from verderer.drivers.local.monitor.launch import launch
from verderer.drivers.local.monitor.spool import READ_BYTES

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from verderer.drivers.local.monitor.cgroup import Group
    from verderer.drivers.local.monitor.launch import Program
    from verderer.drivers.local.monitor.spool import LogWriter

CLOSED = -1


class Replica:
    """Its process, its pipe, its log and its cgroup."""

    def __init__(self, program: Program, group: Group, log: LogWriter) -> None:
        self.group = group
        self.log = log
        self.status: int | None = None
        """The wait status, once it has ended."""
        self.trouble = ""
        """Why the program could not be started."""
        self._program = program
        self._started: int | None = None
        self.pid = 0
        self.output = CLOSED
        self.trouble_pipe = CLOSED

    @property
    def waiting(self) -> bool:
        """Forked, and not yet known to have become the program."""
        return self.trouble_pipe != CLOSED

    @property
    def alive(self) -> bool:
        return self.pid != 0 and self.status is None

    def start(self) -> None:
        """Fork. Raises OSError."""
        launched = launch(self._program, self.group)
        self.pid, self.output, self.trouble_pipe = (
            launched.pid,
            launched.output,
            launched.trouble,
        )
        try:
            os.setpgid(self.pid, self.pid)  # the child does it too; whoever comes second fails
        except OSError:
            pass
        self._started = kernel.started_at(self.pid)

    def hear(self) -> None:
        """Read what the child said about its start: nothing, when all is well."""
        said = os.read(self.trouble_pipe, READ_BYTES).decode("utf-8", "replace").split("\0")
        os.close(self.trouble_pipe)
        self.trouble_pipe = CLOSED
        if len(said) == 3:
            self.trouble = endings.start_failure(
                said[0],
                int(said[1]),
                self._program.argv[0],
                exists=said[2] == "1",
                path=self._program.env.get("PATH", ""),
            )

    def pump(self) -> bool:
        """Move what is in the pipe into the log; False when there was nothing to move."""
        try:
            data = os.read(self.output, READ_BYTES)
        except BlockingIOError:
            return False
        if data:
            self.log.write(data, time.time_ns() // 1_000_000)
            return True
        os.close(self.output)
        self.output = CLOSED
        return False

    def signal(self, number: int) -> None:
        """To the whole process group. Its leader is not reaped yet, so the id is still ours."""
        if self.alive:
            try:
                os.killpg(self.pid, number)
                if number == signal.SIGTERM:
                    os.killpg(self.pid, signal.SIGCONT)
            except ProcessLookupError:
                pass
            except PermissionError:  # it changed its user; `kill` below has more ways
                pass

    def kill(self) -> None:
        """SIGKILL to the process group and everything in the cgroup."""
        self.signal(signal.SIGKILL)
        self.group.kill()

    def reap(self) -> None:
        """Called while the ended leader is still a zombie: end its group, then take the status."""
        self.kill()
        _, self.status = os.waitpid(self.pid, 0)

    def process(self) -> dict[str, Any]:
        """How others find it again."""
        return {"pid": self.pid, "started": self._started}

    def log_end(self) -> dict[str, Any]:
        """How much it wrote, and why the tail is missing if it is."""
        return {"bytes": self.log.offset, "hole": self.log.hole}
