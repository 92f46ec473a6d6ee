"""Puts together what the watches show, attempt by attempt, and says what is observed."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Final

from verderer.core.model.attempt import AttemptKey, AttemptState
from verderer.core.model.waiting import Waiting
from verderer.drivers.contract import Observed
from verderer.drivers.kubernetes import naming
from verderer.drivers.kubernetes.deciding.ending import Verdict, View, judge
from verderer.drivers.kubernetes.deciding.waiting import explain
from verderer.drivers.kubernetes.intention import Intention
from verderer.drivers.kubernetes.seen.sights import Event, Job, Pod

_CONTROLLER: Final = ("batch.kubernetes.io/controller-uid", "controller-uid")


@dataclass(slots=True, eq=False)
class Tracked:
    """One attempt: our object, and what the cluster made of it."""

    key: AttemptKey
    intention: Intention | None = None
    jobs: dict[str, Job] = field(default_factory=dict)
    jobs_gone: set[str] = field(default_factory=set)
    pods: dict[str, Pod] = field(default_factory=dict)
    pods_gone: set[str] = field(default_factory=set)
    refusals: dict[str, str] = field(default_factory=dict)
    """Of pods that could not be made, the newest for each Job."""
    lock: asyncio.Lock = field(default_factory=asyncio.Lock)
    """Held by whoever writes about this attempt."""
    news: asyncio.Event = field(default_factory=asyncio.Event)
    hurried: set[str] = field(default_factory=set)
    """UIDs of pods that have been told to end."""
    waits: Waiting | None = None
    waits_since: float = 0.0
    since: float = field(default_factory=time.monotonic)
    """Monotonic seconds when this life of the agent first heard of it."""
    noted_at: float = 0.0
    """Monotonic seconds of the last status written."""
    verdict: Verdict | None = None
    _observed: Observed | None = None

    @property
    def job(self) -> Job | None:
        """The Job made for our very object, as last seen."""
        if self.intention is None:
            return None
        uid = self.intention.metadata.uid
        for job in self.jobs.values():
            if job.metadata.annotation(naming.INTENTION) == uid:
                return job
        return None

    @property
    def job_uid(self) -> str:
        job = self.job
        if job is not None:
            return job.metadata.uid
        return self.intention.status.job_uid if self.intention is not None else ""

    def own_pods(self) -> list[Pod]:
        """Pods that our Job made; those that are gone too."""
        uid = self.job_uid
        return [pod for pod in self.pods.values() if uid and owner(pod) == uid]

    def view(self) -> View:
        """What a verdict is made from."""
        intention = self.intention or Intention()
        job, uid = self.job, self.job_uid
        return View(
            nodes=intention.spec.nodes,
            timeout_s=intention.spec.timeout_seconds,
            stop=intention.spec.stop,
            outputs=intention.spec.outputs,
            had_job=bool(uid),
            job=job,
            job_gone=bool(uid) and (job is None or uid in self.jobs_gone),
            pods=self.own_pods(),
            gone=frozenset(self.pods_gone),
        )

    def judged(self) -> Verdict:
        """What has become of it; worked out once for each change."""
        if self.verdict is None:
            self.verdict = judge(self.view())
        return self.verdict

    def waiting(self) -> Waiting | None:
        """Why it has not begun, if it has not."""
        verdict = self.judged()
        if self.intention is None or verdict.state is not AttemptState.STARTING:
            return None
        pods = [pod for pod in self.own_pods() if pod.metadata.uid not in self.pods_gone]
        refusal = "" if pods else self.refusals.get(self.job_uid, "")
        nodes = self.intention.spec.nodes
        return explain(pods, nodes=nodes, job=self.job, refusal=refusal)

    def observed(self) -> Observed | None:
        """What the contract wants to know; None for what is no attempt of ours."""
        if self._observed is None and self.intention is not None:
            self._observed = _observed(self.key, self.intention, self.judged(), self.waiting())
        return self._observed

    def touched(self) -> None:
        """Something about it has changed."""
        self.verdict = self._observed = None
        self.news.set()
        self.news = asyncio.Event()

    async def wait(self, timeout_s: float) -> None:
        """Return at the next change, or on time-out."""
        try:
            async with asyncio.timeout(timeout_s):
                await self.news.wait()
        except TimeoutError:
            return


def owner(pod: Pod) -> str:
    """UID of the Job that made a pod."""
    return next((uid for name in _CONTROLLER if (uid := pod.metadata.label(name))), "")


def _observed(
    key: AttemptKey, intention: Intention, verdict: Verdict, pending: Waiting | None
) -> Observed:
    end = intention.end
    if end is not None:
        return Observed(
            key=key,
            state=end.state,
            node=intention.status.node,
            end=end,
            started_ms=intention.started_ms,
            ended_ms=intention.ended_ms,
            outputs=intention.stored,
        )
    state = verdict.state
    if verdict.end is not None:
        # An end counts from when it is on record: whatever then happens to pods cannot change it.
        state = AttemptState.STARTING if verdict.started_ms is None else AttemptState.RUNNING
        state = AttemptState.STOPPING if intention.spec.stop is not None else state
    return Observed(
        key=key,
        state=state,
        node=verdict.node,
        started_ms=verdict.started_ms,
        pending=pending,
    )


class Roster:
    """All attempts, fed by the watches; tells who is affected by what it hears."""

    def __init__(self, on_change: Callable[[Tracked], None]) -> None:
        self.attempts: dict[AttemptKey, Tracked] = {}
        self._on_change = on_change

    def get(self, key: AttemptKey) -> Tracked | None:
        """An attempt with an object of ours."""
        found = self.attempts.get(key)
        return found if found is not None and found.intention is not None else None

    def entry(self, key: AttemptKey) -> Tracked:
        """The entry of an attempt, made when there is none."""
        found = self.attempts.get(key)
        if found is None:
            found = self.attempts[key] = Tracked(key)
        return found

    def all(self) -> Iterable[Tracked]:
        """Attempts with an object of ours."""
        return (one for one in self.attempts.values() if one.intention is not None)

    def intention_changed(self, before: Intention | None, now: Intention | None) -> None:
        """Our own object was made, changed or removed."""
        seen = now or before
        key = seen.key if seen is not None else None
        if key is None:
            return
        tracked = self.entry(key)
        if now is not None:
            tracked.intention = now
        elif _same(tracked.intention, before):
            tracked.intention = None
        self._settle(tracked)

    def job_changed(self, before: Job | None, now: Job | None) -> None:
        """A Job with our label was made, changed or removed."""
        seen = now or before
        tracked = self._labelled(seen.metadata.label(naming.ATTEMPT)) if seen else None
        if tracked is None or seen is None:
            return
        tracked.jobs[seen.metadata.uid] = seen
        if now is None:
            tracked.jobs_gone.add(seen.metadata.uid)
        self._settle(tracked)

    def pod_changed(self, before: Pod | None, now: Pod | None) -> None:
        """A pod with our label was made, changed or removed."""
        seen = now or before
        tracked = self._labelled(seen.metadata.label(naming.ATTEMPT)) if seen else None
        if tracked is None or seen is None:
            return
        tracked.pods[seen.metadata.uid] = seen
        if now is None:
            tracked.pods_gone.add(seen.metadata.uid)
        self._settle(tracked)

    def event_changed(self, _before: Event | None, now: Event | None) -> None:
        """The cluster says that a Job's pods could not be made."""
        tracked = self._labelled(now.involved_object.name) if now is not None else None
        if tracked is None or now is None:
            return
        tracked.refusals[now.involved_object.uid] = now.message or ""
        self._settle(tracked)

    def _labelled(self, text: str) -> Tracked | None:
        try:
            return self.entry(AttemptKey.parse(text))
        except ValueError:
            return None

    def tidy(self, tracked: Tracked) -> None:
        """Forget an attempt of which nothing is left.

        Not while somebody writes about it: whoever holds its lock goes on with this very entry.
        """
        left = tracked.jobs.keys() - tracked.jobs_gone or tracked.pods.keys() - tracked.pods_gone
        if tracked.intention is None and not left and not tracked.lock.locked():
            self.attempts.pop(tracked.key, None)

    def _settle(self, tracked: Tracked) -> None:
        tracked.touched()
        self.tidy(tracked)
        self._on_change(tracked)


def _same(one: Intention | None, other: Intention | None) -> bool:
    return one is not None and other is not None and one.metadata.uid == other.metadata.uid
