"""One process that is measured: started, asked what it used, stopped or killed."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

from verderer.store.embedded.lifeline import die_with_parent

_TICKS = os.sysconf("SC_CLK_TCK")


class Process:
    """Its output goes to a file; it ends with us whatever happens."""

    def __init__(
        self, name: str, argv: Sequence[str], environment: Mapping[str, str], log: Path,
        *, pass_fds: Sequence[int] = (),
    ) -> None:  # fmt: skip
        self.name = name
        self.log = log
        with log.open("ab") as out:
            self._popen = subprocess.Popen(
                argv,
                env=dict(environment),
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=out,
                pass_fds=pass_fds,
                start_new_session=True,
                preexec_fn=die_with_parent(signal.SIGKILL),
            )

    @property
    def pid(self) -> int:
        return self._popen.pid

    @property
    def alive(self) -> bool:
        return self._popen.poll() is None

    def kill(self) -> None:
        """As a power cut would."""
        os.killpg(self.pid, signal.SIGKILL)
        self._popen.wait()

    def stop(self, within_s: float = 30.0) -> None:
        """Ask, then insist."""
        if not self.alive:
            return
        self._popen.terminate()
        try:
            self._popen.wait(within_s)
        except subprocess.TimeoutExpired:
            self.kill()

    def check(self) -> None:
        """Raise with its last words if it has ended."""
        if not self.alive:
            words = self.log.read_text(errors="replace")[-3000:]
            raise RuntimeError(f"{self.name} ended with {self._popen.returncode}:\n{words}")

    def wait(self, within_s: float) -> int:
        return self._popen.wait(within_s)


def family(pid: int) -> list[int]:
    """The process and everything below it."""
    found, rest = [], [pid]
    while rest:
        one = rest.pop()
        found.append(one)
        for tasks in Path(f"/proc/{one}/task").glob("*/children"):
            try:
                rest += [int(child) for child in tasks.read_text().split()]
            except OSError:
                continue
    return found


def cpu_s(pid: int) -> float:
    """CPU seconds of the process, its living children, and those that it has buried."""
    return sum(_ticks(one) for one in family(pid)) / _TICKS


def _ticks(pid: int) -> int:
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return 0
    return sum(int(field) for field in fields[11:15])  # own and buried children's, user and system


def peak_rss_mib(pid: int) -> float:
    """Most that one process has had resident since `forget_peak`."""
    try:
        status = Path(f"/proc/{pid}/status").read_text()
    except OSError:
        return 0.0
    for line in status.splitlines():
        if line.startswith("VmHWM:"):
            return int(line.split()[1]) / 1024
    return 0.0


def forget_peak(pid: int) -> None:
    """Begin to watch the peak anew."""
    try:
        Path(f"/proc/{pid}/clear_refs").write_text("5")
    except OSError:
        return


def shared_out_mib(pid: int) -> float:
    """Memory of a family that shares pages, each page counted once: the sum of proportions."""
    total = 0
    for one in family(pid):
        try:
            text = Path(f"/proc/{one}/smaps_rollup").read_text()
        except OSError:
            continue
        total += next(int(x.split()[1]) for x in text.splitlines() if x.startswith("Pss:"))
    return total / 1024
