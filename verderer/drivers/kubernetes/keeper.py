"""Carries out `deeds`, attempt by attempt, whenever something about one has changed."""

from __future__ import annotations

import asyncio
import time
from typing import Final

import structlog

from verderer.core.errors import VerdererError
from verderer.core.model.attempt import AttemptKey
from verderer.drivers.kubernetes import naming
from verderer.drivers.kubernetes.calls.api import Api
from verderer.drivers.kubernetes.deciding.deeds import Case, Deeds, due
from verderer.drivers.kubernetes.intention import Intention
from verderer.drivers.kubernetes.launching import Launching
from verderer.drivers.kubernetes.roster import Tracked
from verderer.drivers.kubernetes.terms import Terms
from verderer.drivers.kubernetes.views import Views

log = structlog.get_logger("verderer.kubernetes")

WORKERS: Final = 16
_FIRST_PAUSE_S: Final = 0.5
_LONGEST_PAUSE_S: Final = 30.0


class Keeper:
    """A few workers serve all attempts; one attempt is served by one of them at a time."""

    def __init__(self, api: Api, terms: Terms) -> None:
        self._api = api
        self._terms = terms
        self._queue: asyncio.Queue[AttemptKey] = asyncio.Queue()
        self._waiting: set[AttemptKey] = set()
        self._timers: dict[AttemptKey, asyncio.TimerHandle] = {}
        self._pauses: dict[AttemptKey, float] = {}

    def begin(self, views: Views, launching: Launching) -> None:
        """Start the workers."""
        self._views = views
        self._launching = launching
        for _ in range(WORKERS):
            views.spawn(self._work)

    def touched(self, tracked: Tracked) -> None:
        """Something about it has changed: look at it soon."""
        self._look(tracked.key)

    def end(self) -> None:
        """Let all timers go."""
        for timer in self._timers.values():
            timer.cancel()

    def _look(self, key: AttemptKey) -> None:
        if key not in self._waiting:
            self._waiting.add(key)
            self._queue.put_nowait(key)

    async def _work(self) -> None:
        while True:
            key = await self._queue.get()
            self._waiting.discard(key)
            timer = self._timers.pop(key, None)
            if timer is not None:
                timer.cancel()
            tracked = self._views.roster.get(key)
            if tracked is None or not self._views.pods.synced.is_set():
                if tracked is not None:
                    self._later(key, 0.2)
                continue
            try:
                async with tracked.lock:
                    await self._keep(tracked)
            except VerdererError as error:
                pause = self._pauses.get(key, _FIRST_PAUSE_S)
                self._pauses[key] = min(_LONGEST_PAUSE_S, pause * 2)
                log.warning("it will be tried again", attempt=str(key), reason=error.message)
                self._later(key, max(pause, getattr(error, "retry_after_s", 0.0)))
            else:
                self._pauses.pop(key, None)

    def _later(self, key: AttemptKey, pause_s: float) -> None:
        timer = asyncio.get_running_loop().call_later(pause_s, self._look, key)
        old = self._timers.pop(key, None)
        if old is not None:
            old.cancel()
        self._timers[key] = timer

    async def _keep(self, tracked: Tracked) -> None:
        ours = tracked.intention
        if ours is None or ours.end is not None or ours.metadata.deletion_timestamp:
            return
        if not (self._views.jobs.synced.is_set() and self._views.intentions.synced.is_set()):
            self._later(tracked.key, 0.2)
            return
        deeds = due(self._case(tracked, ours), self._terms)
        await self._do(tracked, ours, deeds)
        if deeds.look_again_s is not None:
            self._later(tracked.key, deeds.look_again_s)

    def _case(self, tracked: Tracked, ours: Intention) -> Case:
        now, waits = time.monotonic(), tracked.waiting()
        if waits is None or tracked.waits is None or waits.code is not tracked.waits.code:
            tracked.waits_since = now
        tracked.waits = waits
        return Case(
            intention=ours,
            view=tracked.view(),
            verdict=tracked.judged(),
            waits=waits,
            waited_s=now - tracked.waits_since,
            age_s=now - tracked.since,
            noted_s=now - tracked.noted_at,
            hurried=frozenset(tracked.hurried),
            now_ms=time.time_ns() // 1_000_000,
        )

    async def _do(self, tracked: Tracked, ours: Intention, deeds: Deeds) -> None:
        own = f"{naming.intentions_path(self._terms.namespace)}/{tracked.key}"
        put = self._views.intentions.put
        if deeds.stop is not None:
            put(await self._api.patch(own, {"spec": {"stop": deeds.stop}}, Intention))
        if deeds.make_job:
            await self._launching.recover(tracked)
        if deeds.delete_job:
            await self._api.delete(
                f"{naming.jobs_path(ours.spec.namespace)}/{tracked.key}",
                uid=tracked.job_uid,
                # The Job then stays until the last of its pods is gone.
                propagation="Foreground",
            )
        stop = ours.spec.stop
        for pod in deeds.hurry if stop is not None else ():
            meta = pod.metadata
            tracked.hurried.add(meta.uid)
            path = f"{naming.core_path(meta.namespace, 'pods')}/{meta.name}"
            grace_s = stop.grace_seconds if stop is not None else 0.0
            await self._api.delete(path, uid=meta.uid, grace_s=round(grace_s))
        if deeds.status is not None:
            tracked.noted_at = time.monotonic()
            body = {"status": deeds.status}
            put(await self._api.patch(f"{own}/status", body, Intention))
