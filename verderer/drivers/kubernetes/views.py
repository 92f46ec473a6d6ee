"""All that is watched, together."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Mapping
from typing import Any, Final, TypeVar

import msgspec
import structlog

from verderer.core.errors import VerdererError
from verderer.drivers.kubernetes import naming
from verderer.drivers.kubernetes.calls.api import Api
from verderer.drivers.kubernetes.intention import Intention
from verderer.drivers.kubernetes.roster import Roster, Tracked
from verderer.drivers.kubernetes.seen.nodes import trimmed
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


S = TypeVar("S", bound=msgspec.Struct)


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
        roster, occupancy = self.roster, self.occupancy

        def watched(subject: Subject[Any, Any]) -> Watched[Any, Any]:
            return Watched(api, subject, silence_s=silence_s)

        own = naming.intentions_path(namespace)
        self.intentions: Watched[Intention, Intention] = watched(
            _whole("our own objects", own, Intention, roster.intention_changed)
        )
        self.jobs: Watched[Job, Job] = watched(
            _whole("Jobs", "/apis/batch/v1/jobs", Job, roster.job_changed, _OURS)
        )
        self.pods: Watched[Pod, Pod] = watched(
            _whole("our pods", "/api/v1/pods", Pod, roster.pod_changed, _OURS)
        )
        self.events: Watched[Event, Event] = watched(
            _whole("events of Jobs", "/api/v1/events", Event, roster.event_changed, _REFUSALS)
        )
        self.nodes: Watched[Node, Node] = watched(
            Subject(
                name="nodes",
                path="/api/v1/nodes",
                kind=Node,
                identity=_uid,
                keep=trimmed,
                changed=self._node_changed,
            )
        )
        self.others: Watched[AnyPod, Taken] = watched(
            Subject(
                name="pods of others",
                path="/api/v1/pods",
                kind=AnyPod,
                identity=_uid,
                keep=occupancy.keep,
                changed=occupancy.pod_changed,
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


def _whole(
    name: str,
    path: str,
    kind: type[S],
    changed: Callable[[S | None, S | None], None],
    params: Mapping[str, str] | None = None,
) -> Subject[S, S]:
    """Keep objects as they are read."""
    return Subject(
        name=name,
        path=path,
        kind=kind,
        identity=_uid,
        keep=_same,
        changed=changed,
        params=params or {},
    )


def _uid(seen: Any) -> str:
    uid: str = seen.metadata.uid
    return uid


def _same(seen: S) -> S:
    return seen
