"""The contract's rig over a real Slurm."""

from __future__ import annotations

import dataclasses
import itertools
from pathlib import Path
from typing import Any

import pytest

from tests.drivers.contract import Work, seen
from tests.drivers.rigs import PROGRAMS, plain_order
from tests.drivers.slurm.testbed import Testbed
from verderer.core.model.attempt import AttemptKey
from verderer.drivers.contract import Order
from verderer.drivers.slurm.driver import SlurmDriver
from verderer.drivers.slurm.options import SlurmOptions

_STEPS = itertools.count()
"""Never the same twice: Slurm remembers jobs of earlier tests."""


class SlurmRig:
    """Restarting lets go of the shared folder and takes it again."""

    def __init__(self, testbed: Testbed, shared: Path, **changes: Any) -> None:
        self.testbed = testbed
        defaults: dict[str, Any] = {
            "poll_s": 0.1,
            "longest_poll_s": 0.5,
            "settle_s": 0.5,
            "resume_after_s": 1.0,
            "beat_s": 0.5,
            "silent_s": 3.0,
        }
        self.options = SlurmOptions(
            shared_dir=shared, conf=str(testbed.conf), **{**defaults, **changes}
        )
        self.driver = self.make()

    def make(self, **changes: Any) -> SlurmDriver:
        options = dataclasses.replace(self.options, **changes)
        return SlurmDriver(options, environment=self.testbed.environment)

    async def restart(self, **changes: Any) -> None:
        await self.driver.close()
        self.driver = self.make(**changes)

    def order(self, work: Work, **changes: Any) -> Order:
        if work is Work.OOM and not self.testbed.limits_memory:
            pytest.skip("NOT TESTED: no writable memory cgroup, so an OOM cannot be provoked")
        return self.program(**{**PROGRAMS[work], **changes})

    def program(self, **fields: Any) -> Order:
        return plain_order(next(_STEPS), **fields)

    def jobs(self, key: AttemptKey | None = None) -> list[str]:
        """Numbers of the jobs in Slurm's memory, of all attempts or of one."""
        only = (f"--name={key}",) if key is not None else ()
        return self.testbed.call("squeue", "-h", "-t", "all", "-o", "%A", *only).split()

    async def job_of(self, key: AttemptKey) -> str:
        assert await seen(self.driver, key) is not None
        (job,) = self.jobs(key)
        return job

    async def end(self) -> None:
        """Stop what a failed test left behind."""
        await self.driver.close()
        self.testbed.mend()
