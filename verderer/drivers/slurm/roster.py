"""All attempts of one shared folder, brought up to date by one `squeue` for all of them."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import fcntl
import os
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence

from verderer.core.errors import Fault, Refusal
from verderer.core.model.attempt import AttemptKey
from verderer.drivers.contract import Observed
from verderer.drivers.slurm.attempt import Files, SlurmAttempt, look
from verderer.drivers.slurm.commands import Slurm
from verderer.drivers.slurm.judging import Judge
from verderer.drivers.slurm.layout import Layout
from verderer.drivers.slurm.options import SlurmOptions
from verderer.drivers.slurm.readers.jobs import SlurmJob

_ASK_AGAIN_S = 10.0
"""Between two requests to Slurm to end the same job."""
_NO_LOCKS = {errno.ENOLCK, errno.EOPNOTSUPP, errno.ENOSYS}


class Roster:
    """Attempts by key. Nothing is concluded from a look that failed."""

    def __init__(
        self, folders: Layout, slurm: Slurm, options: SlurmOptions, *, clock: Callable[[], float]
    ) -> None:
        self.news = asyncio.Event()
        """Set when an attempt has changed since the last `observed`."""
        self.opened = False
        self._layout = folders
        self._slurm = slurm
        self._judge = Judge(slurm, options, clock=clock)
        self._clock = clock
        self._attempts: dict[AttemptKey, SlurmAttempt] = {}
        self._looks = 0
        self._lock = -1

    async def open(self) -> None:
        """Take the folder over and know what lies there.

        Raises:
            Fault: another driver uses it, or the file server does not work.
        """
        try:
            found = await asyncio.to_thread(self._open)
        except OSError as problem:
            raise Fault(f"{self._layout.root} cannot be used: {problem}") from problem
        for key, files in found.items():
            if files.order is not None or files.claim is not None or files.end is not None:
                attempt = self.add(key)
                attempt.asked = True
                attempt.take(files, now=self._clock())
        self.opened = True

    def close(self) -> None:
        """Let go of everything but the jobs."""
        if self._lock >= 0:
            os.close(self._lock)
        self._lock = -1
        self._attempts.clear()
        self.opened = False

    @property
    def busy(self) -> bool:
        """Whether something is not over."""
        return any(not attempt.over for attempt in self._attempts.values())

    def get(self, key: AttemptKey) -> SlurmAttempt | None:
        """The attempt, if it is known."""
        return self._attempts.get(key)

    def add(self, key: AttemptKey) -> SlurmAttempt:
        """Know an attempt."""
        attempt = SlurmAttempt(key, self._layout.home(key), clock=self._clock())
        self._attempts[key] = attempt
        self.news.set()
        return attempt

    def drop(self, key: AttemptKey) -> None:
        """Know it no longer."""
        attempt = self._attempts.pop(key, None)
        if attempt is not None:
            attempt.tell()

    def observed(self) -> list[Observed]:
        """What is known of every attempt."""
        self.news.clear()
        return [attempt.observed for attempt in self._attempts.values()]

    def accepted(self, attempt: SlurmAttempt, job_id: int) -> None:
        """Slurm has taken it: looks that begin from now on must show the job."""
        attempt.job_id = job_id
        attempt.sure_from = self._looks + 1
        attempt.submitted_at = attempt.beat_at = self._clock()
        self.news.set()

    async def look(self) -> None:
        """Ask Slurm about all our jobs at once, and take in what follows.

        Raises:
            Fault: Slurm does not answer; then nothing has changed.
        """
        self._looks += 1
        number = self._looks
        jobs = self._ours(await self._slurm.our_jobs())
        for key in jobs.keys() - self._attempts.keys():
            if any(not job.over and not job.completing for job in jobs[key]):
                self.add(key)  # its folder is gone and its job is not: it is ours to end
        await self._take_files(jobs)
        missing = []
        for attempt in self._live():
            self._give_job(attempt, jobs.get(attempt.key, ()))
            if attempt.job is None and attempt.job_id and number >= attempt.sure_from:
                missing.append(attempt)
        await self._ask_accounting(missing)
        sure = set(missing)
        for attempt in self._live():
            known = attempt.job is not None or attempt.barred or attempt in sure
            await self._consider(attempt, sure=known)
        await self._end_strays(jobs)

    async def look_again(self, attempt: SlurmAttempt) -> None:
        """Read its directory and conclude what can be concluded without Slurm."""
        attempt.take(await asyncio.to_thread(look, attempt.home), now=self._clock())
        await self._consider(attempt, sure=attempt.barred)

    async def refuse(self, attempt: SlurmAttempt, message: str) -> None:
        """It will never be started; said by the cluster. Raises OSError."""
        await self._judge.refuse(attempt, message)
        self.news.set()

    def overdue(self) -> tuple[list[SlurmAttempt], list[SlurmAttempt]]:
        """Attempts that were told to end and have not, to be told again or to be forced."""
        now = self._clock()
        again: list[SlurmAttempt] = []
        force: list[SlurmAttempt] = []
        for attempt in self._live():
            stop, job = attempt.files.stop, attempt.job
            if stop is None or job is None or job.over or now - attempt.signalled_at < _ASK_AGAIN_S:
                continue
            late = now - attempt.stopped_at > float(stop["grace_s"]) + _ASK_AGAIN_S
            (force if late or job.waiting else again).append(attempt)
        return again, force

    def unsubmitted(self) -> list[SlurmAttempt]:
        """Orders that stand here and that nobody is handing to Slurm at the moment."""
        return [
            attempt
            for attempt in self._live()
            if attempt.unsubmitted and attempt.job is None and not attempt.lock.locked()
        ]

    def _live(self) -> list[SlurmAttempt]:
        return [attempt for attempt in self._attempts.values() if not attempt.over]

    def _ours(self, jobs: Iterable[SlurmJob]) -> dict[AttemptKey, tuple[SlurmJob, ...]]:
        """By key, the jobs whose name and directory say that they are of this folder."""
        found: defaultdict[AttemptKey, list[SlurmJob]] = defaultdict(list)
        for job in jobs:
            with contextlib.suppress(ValueError):
                key = AttemptKey.parse(job.name)
                if job.directory == str(self._layout.work(key)):
                    found[key].append(job)
        return {key: tuple(some) for key, some in found.items()}

    async def _take_files(self, jobs: Mapping[AttemptKey, Sequence[SlurmJob]]) -> None:
        """Read the directories about which Slurm's word makes one curious."""
        curious = []
        for attempt in self._live():
            mine = jobs.get(attempt.key, ())
            calm = any(job.state in ("PENDING", "RUNNING") for job in mine)
            began = any(job.state == "RUNNING" for job in mine)
            if not calm or (began and attempt.files.running is None) or attempt.claimed != began:
                curious.append(attempt)
        if not curious:
            return
        homes = [attempt.home for attempt in curious]
        found = await asyncio.to_thread(lambda: [look(home) for home in homes])
        for attempt, files in zip(curious, found, strict=True):
            attempt.take(files, now=self._clock())

    def _give_job(self, attempt: SlurmAttempt, jobs: Sequence[SlurmJob]) -> None:
        """Of several jobs of one attempt, the one that runs it or was recorded for it."""
        of_number = {job.id: job for job in jobs}
        if attempt.job_id is None and jobs and not attempt.lock.locked():
            # Submitted without an answer: here it is.
            alive = [job for job in jobs if not job.over] or list(jobs)
            attempt.job_id = min(job.id for job in alive)
        attempt.job = of_number.get(attempt.job_id or 0)

    async def _ask_accounting(self, missing: Sequence[SlurmAttempt]) -> None:
        """What the controller has forgotten, accounting may know; only an end counts."""
        ids = [attempt.job_id for attempt in missing if attempt.job_id]
        if not ids:
            return
        # A controller that lost its state gives numbers out again: the name must be right, too.
        known = {(job.id, job.name): job for job in await self._slurm.accounted(ids) if job.over}
        for attempt in missing:
            attempt.job = known.get((attempt.job_id or 0, str(attempt.key)))

    async def _consider(self, attempt: SlurmAttempt, *, sure: bool) -> None:
        before = attempt.observed
        try:
            if sure:
                await self._judge.judge(attempt)
            else:
                attempt.show()
        finally:
            if attempt.observed != before:
                self.news.set()

    async def _end_strays(self, jobs: Mapping[AttemptKey, Sequence[SlurmJob]]) -> None:
        """Cancel jobs of ours that must not run: doubled ones, and those of what is over."""
        strays: dict[int, SlurmAttempt] = {}
        for key, some in jobs.items():
            attempt = self._attempts.get(key)
            if attempt is None or attempt.lock.locked():
                continue
            for job in some:
                if job.over or job.completing or (not attempt.over and job.id == attempt.job_id):
                    continue
                if self._clock() - attempt.signalled_at >= _ASK_AGAIN_S:
                    strays[job.id] = attempt
        for attempt in strays.values():
            attempt.signalled_at = self._clock()
        if strays:
            with contextlib.suppress(Fault, Refusal):
                await self._slurm.cancel(list(strays))

    def _open(self) -> dict[AttemptKey, Files]:
        self._layout.make()
        self._lock = os.open(self._layout.lock, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as problem:
            if problem.errno not in _NO_LOCKS:
                os.close(self._lock)
                self._lock = -1
                raise
        self._layout.install()
        self._layout.empty()
        return {key: look(self._layout.home(key)) for key in self._layout.known()}
