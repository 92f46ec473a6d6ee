"""All attempts of one root, kept in memory and brought up to date by what pokes."""

from __future__ import annotations

import asyncio
import contextlib
import fcntl
import os
from collections.abc import Callable

from verderer.core.errors import Fault
from verderer.core.model.attempt import AttemptKey
from verderer.drivers.contract import Observed
from verderer.drivers.local.attempt import LocalAttempt
from verderer.drivers.local.layout import Layout
from verderer.drivers.local.monitor import kernel, records
from verderer.drivers.local.spawning import Spawner
from verderer.drivers.local.wakes import Wakes

_RESCAN_S = 30.0
_SETTLE_S = 0.05
_CLAIM_WITHIN_S = 5.0
"""A monitor claims its attempt within milliseconds; after this long it will not come."""
_SENDS = 3


class Roster:
    """Attempts by key, with the spawner, the FIFO and one descriptor per living monitor."""

    def __init__(self, layout: Layout, *, node: str, clock: Callable[[], float]) -> None:
        self.boot = ""
        self._layout = layout
        self._node = node
        self._clock = clock
        self._attempts: dict[AttemptKey, LocalAttempt] = {}
        self._unclaimed: set[AttemptKey] = set()
        self._watched: set[AttemptKey] = set()
        self._changed = asyncio.Event()
        self._scanned_at = 0.0
        self._lock = -1
        self._wakes: Wakes | None = None
        self._spawner = Spawner(layout.root, layout.spawner_log, died=self._changed.set)

    @property
    def opened(self) -> bool:
        return self._wakes is not None

    @property
    def spawner_pid(self) -> int | None:
        """Of the spawner, while there is one."""
        return self._spawner.pid

    def open(self) -> None:
        """Take the root over and adopt what runs.

        Raises:
            Fault: another driver uses it, or the disk does not work.
        """
        try:
            self._layout.make()
            self._take_lock()
            self.boot = kernel.boot_id()
            self._wakes = Wakes(
                self._layout.pokes, state=self.look, output=self._tell, overflow=self._rescan_soon
            )
        except OSError as problem:
            raise Fault(f"{self._layout.root} cannot be used: {problem}") from problem
        self._loop = asyncio.get_running_loop()
        self._layout.empty()
        self._spawner.start()
        self._scan()

    def close(self) -> None:
        """Let go of everything but the attempts."""
        if self._wakes is None:
            return
        for attempt in self._attempts.values():
            self._unwatch(attempt)
        self._attempts.clear()
        self._unclaimed.clear()
        self._wakes.close()
        self._wakes = None
        self._spawner.close()
        os.close(self._lock)

    def get(self, key: AttemptKey) -> LocalAttempt | None:
        """The attempt, if it was ordered."""
        return self._attempts.get(key)

    def add(self, key: AttemptKey) -> LocalAttempt:
        """Know an attempt whose order has just been written."""
        home = self._layout.home(key)
        order = records.read(str(home), records.ORDER)
        if order is None:
            raise Fault(f"the order of {key} cannot be read back")
        attempt = LocalAttempt(key, home, order, node=self._node)
        self._attempts[key] = attempt
        return attempt

    def accept(self, key: AttemptKey) -> None:
        """Know an attempt and have it started."""
        self._send(self.add(key))
        self._changed.set()

    def drop(self, key: AttemptKey) -> None:
        """Know it no longer."""
        attempt = self._attempts.pop(key, None)
        self._unclaimed.discard(key)
        if attempt is not None:
            self._unwatch(attempt)
            attempt.tell()

    def observed(self) -> list[Observed]:
        """What is known of every attempt, brought up to date first."""
        self._changed.clear()
        if self._clock() - self._scanned_at >= _RESCAN_S:
            self._scan()
        for key in list(self._unclaimed):
            self.look(key)
        return [attempt.observed for attempt in self._attempts.values()]

    async def changed(self, *, timeout_s: float) -> None:
        """Return when something may have changed since the last `observed`, or on time-out."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(timeout_s):
                await self._changed.wait()

    def touched(self, key: AttemptKey) -> None:
        """We changed it ourselves."""
        self.look(key)
        self._changed.set()

    def look(self, key: AttemptKey) -> None:
        """Read one attempt again, watch its monitor, tell its followers."""
        attempt = self._attempts.get(key)
        if attempt is None:
            return
        before = attempt.observed
        with contextlib.suppress(OSError):  # a full disk: what we know stays, the scan tries again
            attempt.look(self.boot)
        if attempt.claim is None and not attempt.over:
            self._see_to(attempt)
        else:
            self._unclaimed.discard(key)
        self._watch(attempt)
        if attempt.settling:
            self._loop.call_later(_SETTLE_S, self.look, key)
        if attempt.observed != before:
            self._changed.set()
            attempt.tell()

    def unfinished(self) -> set[str]:
        """Names of the attempts that are not over."""
        return {str(key) for key, attempt in self._attempts.items() if not attempt.over}

    def busy_devices(self) -> list[str]:
        """Accelerators that attempts hold now."""
        return [name for attempt in self._attempts.values() for name in attempt.devices]

    def _scan(self) -> None:
        self._scanned_at = self._clock()
        for key in self._layout.known():
            if key not in self._attempts and (self._layout.home(key) / records.ORDER).exists():
                with contextlib.suppress(Fault):
                    self.add(key)
        for key in list(self._attempts):
            self.look(key)

    def _rescan_soon(self) -> None:
        self._scanned_at = float("-inf")
        self._changed.set()

    def _see_to(self, attempt: LocalAttempt) -> None:
        """Nobody claimed it: then nothing of it ran, and it is safe to hand it over again."""
        self._unclaimed.add(attempt.key)
        if attempt.sent_at is not None and self._clock() - attempt.sent_at < _CLAIM_WITHIN_S:
            return
        if attempt.sent_times >= _SENDS:
            with contextlib.suppress(OSError):
                why = f"no process could be made for it; see {self._layout.spawner_log}"
                attempt.give_up(why, boot=self.boot)
            return
        self._send(attempt)

    def _send(self, attempt: LocalAttempt) -> None:
        self._unclaimed.add(attempt.key)
        try:
            self._spawner.send(str(attempt.key))
        except Fault as problem:
            # Accepted all the same: the order stands on disk, and the next look sends it.
            self._loop.call_later(problem.retry_after_s, self.look, attempt.key)
            return
        attempt.sent_at = self._clock()
        attempt.sent_times += 1

    def _tell(self, key: AttemptKey) -> None:
        if (attempt := self._attempts.get(key)) is not None:
            attempt.tell()

    def _watch(self, attempt: LocalAttempt) -> None:
        """Be woken when the monitor dies: its descriptor is readable from then on."""
        if not attempt.monitored:
            self._unwatch(attempt)
        elif attempt.key not in self._watched and attempt.pidfd >= 0:
            self._watched.add(attempt.key)
            self._loop.add_reader(attempt.pidfd, self.look, attempt.key)

    def _unwatch(self, attempt: LocalAttempt) -> None:
        if attempt.key in self._watched:
            self._watched.remove(attempt.key)
            self._loop.remove_reader(attempt.pidfd)
        if attempt.pidfd >= 0:
            os.close(attempt.pidfd)
        attempt.pidfd = -1

    def _take_lock(self) -> None:
        self._lock = os.open(self._layout.lock, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            os.close(self._lock)
            raise
