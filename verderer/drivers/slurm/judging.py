"""Concludes what can be concluded about one attempt, asking Slurm more where that matters."""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import pwd
from collections.abc import Callable

from verderer.core.model.attempt import End, EndCause
from verderer.drivers.slurm import layout
from verderer.drivers.slurm.attempt import SlurmAttempt, look
from verderer.drivers.slurm.commands import Slurm
from verderer.drivers.slurm.options import SlurmOptions
from verderer.drivers.slurm.verdict import verdict


class Judge:
    """Each method leaves in `attempt.observed` what is known then."""

    def __init__(self, slurm: Slurm, options: SlurmOptions, *, clock: Callable[[], float]) -> None:
        self._slurm = slurm
        self._options = options
        self._clock = clock

    async def judge(self, attempt: SlurmAttempt) -> None:
        """Slurm has surely shown the job, or surely does not know it.

        Raises:
            Fault: Slurm does not answer, and without it nothing can be concluded.
        """
        now = self._clock()
        job = attempt.job
        if attempt.files.claim is None and attempt.files.there and (job is None or job.over):
            # It has not begun, and from here on it cannot; or else its claim is now seen.
            await asyncio.to_thread(layout.bar, attempt.home)
            attempt.take(await asyncio.to_thread(look, attempt.home), now=now)
        if self._arriving(attempt, now):
            attempt.show()
            return
        await self._ask_more(attempt)
        silent = now - attempt.beat_at >= self._options.silent_s
        end = verdict(attempt.evidence(silent=silent))
        if end is None:
            attempt.show()
        else:
            await self.conclude(attempt, end)

    def _arriving(self, attempt: SlurmAttempt, now: float) -> bool:
        """Whether its last words may still be on their way through the file server."""
        over = attempt.job is not None and attempt.job.over
        if not over or not attempt.claimed or len(attempt.files.exits) >= attempt.nodes:
            return False
        attempt.ended_at = now if attempt.ended_at is None else attempt.ended_at
        return now - attempt.ended_at < self._options.settle_s

    async def _ask_more(self, attempt: SlurmAttempt) -> None:
        """Exit code, restarts and who cancelled: asked only where the answer matters."""
        job, exits = attempt.job, attempt.files.exits
        if job is None or attempt.barred:
            return
        plain = len(exits) >= attempt.nodes and all(not one.why for one in exits.values())
        requeued = job.waiting and attempt.claimed and job.state != "SUSPENDED"
        if (job.over and not plain and job.restarts is None) or requeued:
            full = await self._slurm.job(job.id)
            if full is not None:
                attempt.job = job = dataclasses.replace(full, node=full.node or job.node)
        if job.state == "CANCELLED" and not attempt.stopped and not job.cancelled_by:
            for told in await self._slurm.accounted([job.id]):
                attempt.job = dataclasses.replace(job, cancelled_by=_user(told.cancelled_by))

    async def conclude(self, attempt: SlurmAttempt, end: End) -> None:
        """It is over, once and for all."""
        document = attempt.conclude(end)
        if attempt.files.there:
            # A failed write costs nothing: the same is concluded again after a restart.
            with contextlib.suppress(OSError):
                await asyncio.to_thread(layout.write, attempt.home, layout.END, document)

    async def refuse(self, attempt: SlurmAttempt, message: str) -> None:
        """It will never be started; said by the cluster. Raises OSError."""
        if await asyncio.to_thread(layout.bar, attempt.home):
            await self.conclude(attempt, End(cause=EndCause.START, message=message[:2000]))


def _user(number: str) -> str:
    """The user's name, when this machine knows it."""
    try:
        return pwd.getpwuid(int(number)).pw_name
    except (ValueError, KeyError, OverflowError):
        return number
