"""All that is watched, together."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any, Final

import structlog

from verderer.core.errors import VerdererError
from verderer.drivers.kubernetes import naming
from verderer.drivers.kubernetes.calls.api import Api
from verderer.drivers.kubernetes.intention import Intention
from verderer.drivers.kubernetes.roster import Roster, Tracked
from verderer.drivers.kubernetes.seen.occupancy import Occupancy, Taken
from verderer.drivers.kubernetes.seen.sights import AnyPod, Event, Job, Node, Pod
from verderer.drivers.kubernetes.watching import SILENCE_S, Subject, Watched

log = structlog.get_logger("verderer.kubernetes")

SYNC_S: Final = 30.0
_OURS: Final = {"labelSelector": naming.ATTEMPT}
_OTHERS: Final = {
    "labelSelector": f"!{naming.ATTEMPT}",
    "fieldSelector": "spec.nodeName!=,status.phase!=Succeeded,status.phase!=Failed",
}
_REFUSALS: Final = {"fieldSelector": "involvedObject.kind=Job,reason=FailedCreate"}


class Views:
    """Six watches: our objects, their Jobs, pods and troubles; nodes and what others hold there."""

    def __init__(
        self,
        api: Api,
        namespace: str,
        on_change: Callable[[Tracked], None],
        *,
        silence_s: float = SILENCE_S,
    ) -> None:
        self.roster = Roster(on_change)
        self.occupancy = Occupancy()
        self.changed = asyncio.Event()
        """Set when a node has changed."""
        roster = self.roster

        def watched(subject: Subject[Any, Any]) -> Watched[Any, Any]:
            return Watched(api, subject, silence_s=silence_s)

        self.intentions: Watched[Intention, Intention] = watched(
            Subject(
                name="our own objects",
                path=naming.intentions_path(namespace),
                kind=Intention,
                identity=_uid,
                keep=_whole,
                changed=roster.intention_changed,
            )
        )
        self.jobs: Watched[Job, Job] = watched(
            Subject(
                name="Jobs",
                path="/apis/batch/v1/jobs",
                kind=Job,
                identity=_uid,
                keep=_whole,
                changed=roster.job_changed,
                params=_OURS,
            )
        )
        self.pods: Watched[Pod, Pod] = watched(
            Subject(
                name="our pods",
                path="/api/v1/pods",
                kind=Pod,
                identity=_uid,
                keep=_whole,
                changed=roster.pod_changed,
                params=_OURS,
            )
        )
        self.events: Watched[Event, Event] = watched(
            Subject(
                name="events of Jobs",
                path="/api/v1/events",
                kind=Event,
                identity=_uid,
                keep=_whole,
                changed=roster.event_changed,
                params=_REFUSALS,
            )
        )
        self.nodes: Watched[Node, Node] = watched(
            Subject(
                name="nodes",
                path="/api/v1/nodes",
                kind=Node,
                identity=_uid,
                keep=_whole,
                changed=self._node_changed,
            )
        )
        self.others: Watched[AnyPod, Taken] = watched(
            Subject(
                name="pods of others",
                path="/api/v1/pods",
                kind=AnyPod,
                identity=_uid,
                keep=self.occupancy.keep,
                changed=self.occupancy.pod_changed,
                params=_OTHERS,
            )
        )
        self._tasks: set[asyncio.Task[None]] = set()

    def begin(self) -> None:
        """Start watching."""
        for one in (*self._of_work(), self.events, self.nodes, self.others):
            self.spawn(one.run)

    def spawn(self, work: Callable[[], Coroutine[object, object, None]]) -> None:
        """Keep something running until the end, whatever it dies of."""
        task = asyncio.ensure_future(_for_ever(work))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def end(self) -> None:
        """Stop watching."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def of_work(self) -> None:
        """Return when attempts can be believed. Raises Fault while they cannot."""
        await _believable(self._of_work())

    async def of_nodes(self) -> None:
        """Return when nodes can be believed. Raises Fault while they cannot."""
        await _believable((self.nodes, self.others))

    def _of_work(self) -> tuple[Watched[Any, Any], ...]:
        return (self.intentions, self.jobs, self.pods)

    def _node_changed(self, before: Node | None, now: Node | None) -> None:
        self.occupancy.node_changed(before, now)
        self.changed.set()


async def _believable(views: tuple[Watched[Any, Any], ...]) -> None:
    for one in views:
        if not one.synced.is_set():
            await one.ready(SYNC_S)
        if one.trouble is not None:
            raise one.trouble


async def _for_ever(work: Callable[[], Coroutine[object, object, None]]) -> None:
    while True:
        try:
            await work()
        except VerdererError as error:
            log.warning("interrupted", reason=error.message)
        except Exception:
            log.exception("a part of the Kubernetes driver failed and starts again")
        await asyncio.sleep(1.0)


def _uid(seen: Any) -> str:
    uid: str = seen.metadata.uid
    return uid


def _whole(seen: Any) -> Any:
    return seen
