"""Makes attempts end: what has not begun is barred for ever, what runs is told and then forced."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Sequence

from verderer.core.errors import Fault, Refusal
from verderer.drivers.slurm import layout
from verderer.drivers.slurm.attempt import SlurmAttempt
from verderer.drivers.slurm.commands import Slurm
from verderer.drivers.slurm.roster import Roster


class Ending:
    """The wish stands in `stop.json`, so that a restart of anything does not undo it."""

    def __init__(self, slurm: Slurm, roster: Roster, *, clock: Callable[[], float]) -> None:
        self._slurm = slurm
        self._roster = roster
        self._clock = clock

    async def stop(self, attempt: SlurmAttempt, *, grace_s: float) -> None:
        """Make it end; a second, longer grace changes nothing.

        Raises:
            Fault: Slurm does not answer; it is told again at the next look, too.
            OSError: the wish cannot be written.
        """
        async with attempt.lock:
            if attempt.over:
                return
            earlier = attempt.files.stop
            shorter = earlier is None or grace_s < float(earlier["grace_s"])
            if shorter:
                await asyncio.to_thread(_write_wish, attempt, grace_s)
                attempt.stopped_at = self._clock()
            job = attempt.job
            running = job is not None and not job.waiting
            if not running and await asyncio.to_thread(layout.bar, attempt.home):
                await self._roster.look_again(attempt)
                if attempt.job_id is not None:
                    # Should this fail, the job is seen again as one of what is over.
                    with contextlib.suppress(Fault, Refusal):
                        await self._slurm.cancel([attempt.job_id], _called(attempt))
                return
            await self._roster.look_again(attempt)
            if shorter or attempt.signalled_at < attempt.stopped_at:
                await self._tell([attempt], _called(attempt))

    async def insist(self) -> None:
        """Tell again what was told in vain, and force what had its grace.

        Raises:
            Fault: Slurm does not answer.
        """
        again, force = self._roster.overdue()
        await self._tell(again)
        ids = [attempt.job_id for attempt in force if attempt.job_id is not None]
        with contextlib.suppress(Refusal):
            await self._slurm.cancel(ids)
        for attempt in force:
            attempt.signalled_at = self._clock()

    async def _tell(self, attempts: Sequence[SlurmAttempt], *options: str) -> None:
        """SIGTERM for our program on each node, which knows the grace."""
        for batch in (True, False):
            some = [one for one in attempts if (one.nodes == 1) is batch and one.job_id is not None]
            ids = [one.job_id for one in some if one.job_id is not None]
            # Of one node the batch script runs the program; of several, the job's step does.
            target = ("--batch",) if batch else ()
            with contextlib.suppress(Refusal):
                await self._slurm.cancel(ids, "--signal=TERM", *target, *options)
            for attempt in some:
                attempt.signalled_at = self._clock()


def _called(attempt: SlurmAttempt) -> str:
    """Only the job of that name: a controller that lost its state gives numbers out again."""
    return f"--name={attempt.key}"


def _write_wish(attempt: SlurmAttempt, grace_s: float) -> None:
    attempt.home.mkdir(mode=layout.PRIVATE, parents=True, exist_ok=True)
    layout.write(attempt.home, layout.STOP, {"grace_s": grace_s})
