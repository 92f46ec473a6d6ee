"""A real Slurm on the loopback, started by the scripts in `testbeds/slurm`.

Two of them on one machine share the cgroups of jobs with the same number, and the end of one ends
the other: all tests that use one are in one group, so that one worker runs them in turn.
"""

from __future__ import annotations

import os
import random
import shutil
import socket
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import pytest

SCRIPTS = Path(__file__).parents[3] / "testbeds" / "slurm"
PROGRAMS = ("sbatch", "squeue", "scontrol", "scancel", "sacct", "slurmctld", "slurmd", "munged")
_SEARCH = os.environ.get("PATH", "") + ":/usr/sbin:/sbin"


def missing() -> str:
    """Why there can be no Slurm here; empty when there can."""
    absent = [name for name in PROGRAMS if shutil.which(name, path=_SEARCH) is None]
    if absent:
        return f"no {', '.join(absent)}: `make testbed` as root on Debian installs them"
    return "" if os.geteuid() == 0 else "only root can start Slurm's daemons for tests"


class Testbed:
    """Three nodes `n0` to `n2` of 16 processors and 8 fake GPUs."""

    __test__ = False

    def __init__(self, base: Path) -> None:
        self.base = base
        self.port = _free_ports(5)
        self.environment = {
            "PATH": os.environ["PATH"],
            "HOME": os.environ.get("HOME", "/"),
            "SLURM_CONF": str(self.conf),
            "MIN_JOB_AGE": "300",
            "MESSAGE_TIMEOUT": "5",
        }

    @property
    def conf(self) -> Path:
        return self.base / "etc" / "slurm.conf"

    @property
    def limits_memory(self) -> bool:
        return (self.base / "cgroup").exists()

    @property
    def has_device_files(self) -> bool:
        return (self.base / "dev" / "gpu0").is_char_device()

    def start(self) -> None:
        self._script("start.sh", str(self.base), str(self.port))

    def stop(self) -> None:
        self._script("stop.sh", str(self.base))

    def daemon(self, what: str, name: str) -> None:
        """`start`, `stop` or `kill` one of munged, slurmctld, slurmd.n0, …"""
        self._script("daemon.sh", str(self.base), what, name)

    def call(self, *command: str) -> str:
        """Run one of Slurm's commands."""
        answer = subprocess.run(
            command, env=self.environment, capture_output=True, text=True, timeout=60, check=False
        )
        assert answer.returncode == 0, f"{command}: {answer.stderr}"
        return answer.stdout

    def mend(self) -> None:
        """Everything runs, no node is drained and no job is left."""
        for name in ("munged", "slurmctld", "slurmd.n0", "slurmd.n1", "slurmd.n2"):
            self.daemon("start", name)
        self.wait(lambda: "UP" in self.call("scontrol", "ping"), "the controller answers")
        if self.call("squeue", "--noheader"):
            self.call("scancel", "--quiet", "--user=root", "--signal=KILL", "--full")
            self.call("scancel", "--quiet", "--user=root")
            self.wait(lambda: not self.call("squeue", "--noheader"), "no job is left")
        for node in ("n0", "n1", "n2"):
            shown = self.call("scontrol", "--oneliner", "show", "node", node)
            state = shown.split(" State=")[1].split()[0]
            if "DRAIN" in state or "DOWN" in state:
                self.call("scontrol", "update", f"nodename={node}", "state=resume")
        self.wait(
            lambda: (
                self.call("sinfo", "-h", "-N", "-p", "main", "-t", "idle", "-o", "%N").count("n")
                == 3
            ),
            "the nodes are idle",
        )

    def wait(self, so: Callable[[], bool], what: str, within_s: float = 40.0) -> None:
        deadline = time.monotonic() + within_s
        while True:
            try:
                if so():
                    return
            except AssertionError:
                if time.monotonic() > deadline:
                    raise
            assert time.monotonic() < deadline, f"not in time: {what}"
            time.sleep(0.05)

    def _script(self, name: str, *arguments: str) -> None:
        answer = subprocess.run(
            [str(SCRIPTS / name), *arguments],
            env=self.environment,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        if answer.returncode:
            pytest.fail(f"{name}: {answer.stdout}{answer.stderr}")


def _free_ports(number: int) -> int:
    """The first of some ports in a row that nobody listens on."""
    while True:
        first = random.randrange(20_000, 30_000)
        try:
            for port in range(first, first + number):
                with socket.socket() as probe:
                    probe.bind(("127.0.0.1", port))
        except OSError:
            continue
        return first
