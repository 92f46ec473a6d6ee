"""Concludes what can be concluded about one attempt, asking Slurm more where that matters."""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import pwd
from collections.abc import Callable
from typing import Final

from verderer.core.model.attempt import End, EndCause
from verderer.drivers.slurm import layout
from verderer.drivers.slurm.attempt import SlurmAttempt, look
from verderer.drivers.slurm.commands import Slurm
from verderer.drivers.slurm.options import SlurmOptions
from verderer.drivers.slurm.verdict import verdict

_BEATS: Final = 2.5
"""So many signs of life may be missing before nobody is taken to be alive."""
_ASK_AGAIN_S: Final = 5.0


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
        """Whether its last words may still be on their way, or it may even be alive.

        Slurm gives a node up that it cannot reach; what runs there may go on for a while, and
        shows it by its sign of life.
        """
        job = attempt.job
        complete = len(attempt.files.exits) >= attempt.nodes
        if job is None or not job.over or not attempt.claimed or complete:
            return False
        if attempt.ended_at is None:
            attempt.ended_at = attempt.beat_at = now
        wait_s = self._options.settle_s
        if job.state == "NODE_FAIL":
            wait_s = max(wait_s, _BEATS * self._options.beat_s)
        return now - attempt.beat_at < wait_s

    async def _ask_more(self, attempt: SlurmAttempt) -> None:
        """Exit code, restarts and who cancelled: asked only where the answer matters."""
        job, exits = attempt.job, attempt.files.exits
        if job is None or attempt.barred:
            return
        plain = len(exits) >= attempt.nodes and all(not one.why for one in exits.values())
        requeued = job.waiting and attempt.claimed and job.state != "SUSPENDED"
        due = self._clock() - attempt.asked_more_at >= _ASK_AGAIN_S
        if (job.over and not plain and job.restarts is None) or (requeued and due):
            attempt.asked_more_at = self._clock()
            full = await self._slurm.job(job.id)
            if full is not None and full.name == job.name:
                attempt.job = job = dataclasses.replace(full, node=full.node or job.node)
        if job.state == "CANCELLED" and not attempt.stopped and not job.cancelled_by:
            for told in await self._slurm.accounted([job.id]):
                if told.name != job.name:
                    continue
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
