"""What placement decides on, kept resident and advanced by what changed.

A waiting step costs 24 bytes here: steps of one shape in one project stand in a lane of three
integer arrays. What left the queue is not looked for: a stale entry is found out when a plan that
names it is applied, and dropped then.
"""

from __future__ import annotations

import heapq
from array import array
from collections.abc import Iterable

from verderer.core.model.cluster import ClusterKind, Place, Room
from verderer.core.placement import LaneKey, Shape
from verderer.store.database import Tx
from verderer.store.tables import clusters, documents, queue
from verderer.store.tables.queue import Entry

_COMPACT_AT = 4096


class ResidentLane:
    """First in, first out; the arrays are compacted when half of them is spent."""

    __slots__ = ("_head", "_since", "_steps", "priority", "shape")

    def __init__(self, shape: Shape, priority: int) -> None:
        self.shape = shape
        self.priority = priority
        self._steps = array("q")
        self._since = array("d")
        self._head = 0

    def __len__(self) -> int:
        return len(self._steps) - self._head

    def append(self, step: int, since: float) -> None:
        self._steps.append(step)
        self._since.append(since)

    def since(self, position: int) -> float:
        return self._since[self._head + position]

    def step(self, position: int) -> int:
        return self._steps[self._head + position]

    def drop_head(self, count: int) -> None:
        """Forget the first `count` steps."""
        self._head += count
        if self._head >= _COMPACT_AT and self._head * 2 >= len(self._steps):
            del self._steps[: self._head]
            del self._since[: self._head]
            self._head = 0


class Snapshot:
    """One process's resident view; not safe to share between tasks."""

    def __init__(self) -> None:
        self.lanes: dict[LaneKey, ResidentLane] = {}
        self.places: list[Place] = []
        self._shapes: dict[int, Shape] = {}
        self._since_xid = 0
        self._recent: dict[int, int] = {}
        self._later: list[tuple[float, int, Entry]] = []

    def __len__(self) -> int:
        """Steps that may be placed now, stale entries included."""
        return sum(len(lane) for lane in self.lanes.values())

    async def advance(self, tx: Tx, *, now: float) -> int:
        """Take in what was queued since the last call; return how many entries were new.

        `now` is in seconds of a clock that never jumps, the same as for `wake_later`.
        """
        entries, horizon = await queue.since(tx, self._since_xid)
        fresh = [e for e in entries if self._recent.get(e.step) != e.xid]
        await self._learn_shapes(tx, fresh)
        for entry in fresh:
            if entry.due_in_s is None:
                self._queue(entry)
            else:
                heapq.heappush(self._later, (now + entry.due_in_s, entry.step, entry))
        self._since_xid = horizon
        # Only rows at or above the horizon will be read again.
        self._recent = {e.step: e.xid for e in entries if e.xid >= horizon}
        return len(fresh)

    async def look_around(self, tx: Tx) -> None:
        """Read the clusters: a row each, with what they have free."""
        self.places = [
            Place(
                id=row["id"],
                name=row["cluster_id"],
                kind=ClusterKind(row["kind"]),
                enabled=row["enabled"],
                silent_s=row["silent_s"],
                rooms={name: Room(*amounts) for name, amounts in row["capacity"].items()},
            )
            for row in await clusters.places(tx)
        ]

    def wake_later(self, now: float) -> float | None:
        """Queue what has paused long enough; return when the next one is due."""
        while self._later and self._later[0][0] <= now:
            self._queue(heapq.heappop(self._later)[2])
        return self._later[0][0] if self._later else None

    def put_back(self, lane: LaneKey, steps: Iterable[int], since: float) -> None:
        """Steps that could not be written after all wait again, at the end of their lane."""
        for step in steps:
            self.lanes[lane].append(step, since)

    def _queue(self, entry: Entry) -> None:
        key = (entry.project, entry.shape)
        lane = self.lanes.get(key)
        if lane is None:
            lane = self.lanes[key] = ResidentLane(self._shapes[entry.shape], entry.priority)
        lane.append(entry.step, entry.ready_at.timestamp())

    async def _learn_shapes(self, tx: Tx, entries: Iterable[Entry]) -> None:
        missing = {e.shape for e in entries} - self._shapes.keys()
        if missing:
            for shape, (requests, nodes) in (
                await documents.read_shapes(tx, sorted(missing))
            ).items():
                self._shapes[shape] = Shape(requests, nodes)
