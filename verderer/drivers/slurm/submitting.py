"""Hands orders to Slurm so that each becomes one job, whatever is lost on the way.

The order is on the disk before the first `sbatch`; whoever finds it there, and whoever got no
answer, looks for the job before handing it in again: among our jobs, in accounting, and by the
claim that a job leaves when it begins. Should a job be doubled all the same, only one can claim
the attempt, and the other is cancelled when it is seen.
"""

from __future__ import annotations

import asyncio
import contextlib
import shutil
from collections.abc import Callable, Mapping
from typing import Any

from verderer.core.errors import Fault, Refusal
from verderer.drivers.contract import Order
from verderer.drivers.slurm import layout, submission
from verderer.drivers.slurm.attempt import Files, SlurmAttempt, look
from verderer.drivers.slurm.commands import Slurm
from verderer.drivers.slurm.layout import Layout
from verderer.drivers.slurm.options import SlurmOptions
from verderer.drivers.slurm.pace import Pace
from verderer.drivers.slurm.roster import Roster


class Submitting:
    """Starts, and resumes starts that an earlier life of the agent did not finish."""

    def __init__(
        self,
        folders: Layout,
        slurm: Slurm,
        roster: Roster,
        options: SlurmOptions,
        *,
        base_environment: Mapping[str, str],
        clock: Callable[[], float],
    ) -> None:
        self._layout = folders
        self._slurm = slurm
        self._roster = roster
        self._options = options
        self._environment = base_environment
        self._clock = clock
        self._pace = Pace(options.submissions_per_s, clock=clock)

    async def start(self, order: Order) -> None:
        """Make the job exist.

        Raises:
            Refusal: Slurm does not take it; nothing is left behind.
            Fault: no disk, or no answer.
        """
        known = self._roster.get(order.key)
        attempt = known or self._roster.add(order.key)
        async with attempt.lock:
            if attempt.over or attempt.job_id is not None or attempt.files.claim is not None:
                return
            try:
                if attempt.files.order is None:
                    document = await asyncio.to_thread(self._write_down, order)
                    attempt.take(Files(there=True, order=document), now=self._clock())
                await self._submit(attempt)
            except OSError as problem:
                self._give_up(attempt)
                raise Fault(f"the order cannot be written: {problem}") from problem
            except Refusal:
                await asyncio.to_thread(self._wipe, attempt)
                self._roster.drop(order.key)
                raise
            except Fault:
                attempt.submitted_at = self._clock()
                raise

    async def resume(self) -> None:
        """Hand in what stands here without a job and is in nobody's hands.

        Raises:
            Fault: Slurm does not answer.
        """
        now = self._clock()
        for attempt in self._roster.unsubmitted():
            if now - attempt.submitted_at < self._options.resume_after_s:
                continue
            async with attempt.lock:
                attempt.submitted_at = now
                try:
                    await self._submit(attempt)
                except Refusal as problem:
                    await self._roster.refuse(attempt, str(problem))
                except OSError as problem:
                    raise Fault(f"{attempt.key} cannot be written: {problem}") from problem

    async def _submit(self, attempt: SlurmAttempt) -> None:
        if attempt.asked and await self._found(attempt):
            return
        arguments = [str(word) for word in (attempt.files.order or {}).get("sbatch", ())]
        await self._pace.permit()
        attempt.asked = True
        try:
            job_id = await self._slurm.submit(arguments)
        except Refusal:
            attempt.take(await self._read(attempt), now=self._clock())
            if attempt.claimed:  # an earlier try was accepted, and that job has begun
                return
            raise
        await self._record(attempt, job_id)

    async def _found(self, attempt: SlurmAttempt) -> bool:
        """Look for the job of a try that brought no answer."""
        attempt.take(await self._read(attempt), now=self._clock())
        if attempt.files.claim is not None:
            return True
        name, directory = str(attempt.key), str(self._layout.work(attempt.key))
        jobs = [*await self._slurm.our_jobs(name=name), *await self._slurm.accounted((), name=name)]
        ids = sorted(job.id for job in jobs if job.name == name and job.directory == directory)
        if not ids:
            return False
        await self._record(attempt, ids[0])
        return True

    async def _record(self, attempt: SlurmAttempt, job_id: int) -> None:
        """Remember the job. Should that fail, it is found again by its name."""
        self._roster.accepted(attempt, job_id)
        with contextlib.suppress(OSError):
            told = {"id": job_id}
            await asyncio.to_thread(layout.write, attempt.home, layout.JOB, told, durable=False)

    async def _read(self, attempt: SlurmAttempt) -> Files:
        return await asyncio.to_thread(look, attempt.home)

    def _write_down(self, order: Order) -> dict[str, Any]:
        home = self._layout.home(order.key)
        document = submission.compose(order, home, self._options, self._environment)
        document["sbatch"] = submission.arguments(order, home, self._options)
        batch = submission.batch_script(home, self._layout.program, self._options)
        submission.write_down(home, order, document, batch)
        return document

    def _give_up(self, attempt: SlurmAttempt) -> None:
        """Without an order on disk there is no attempt."""
        if attempt.files.order is None:
            self._roster.drop(attempt.key)

    def _wipe(self, attempt: SlurmAttempt) -> None:
        """A refused order leaves its working directory and nothing else."""
        for name in (layout.ORDER, layout.BATCH, layout.SCRIPT, layout.OUTPUT):
            (attempt.home / name).unlink(missing_ok=True)
        shutil.rmtree(attempt.home / "log", ignore_errors=True)
