"""What placement decides on, kept resident and advanced by what changed.

A waiting step costs 16 bytes here: steps of one shape in one project stand in a lane of two arrays
of numbers. What left the queue is not looked for: a stale entry is found out when a plan that
names it is applied, and dropped then.
"""

from __future__ import annotations

import heapq
from array import array
from collections.abc import Iterable, Sequence
from contextlib import aclosing
from typing import NamedTuple

from verderer.core.governance.model import Bounds
from verderer.core.model.cluster import ClusterKind, Place, Room
from verderer.core.placement import LaneKey, Shape
from verderer.store.bounds import ResidentBounds
from verderer.store.database import Tx
from verderer.store.tables import clusters, documents, queue
from verderer.store.tables.queue import Entry

_COMPACT_AT = 4096


class ResidentLane:
    """First in, first out; the arrays are compacted when half of them is spent."""

    __slots__ = ("_head", "_since", "_steps", "shape")

    def __init__(self, shape: Shape) -> None:
        self.shape = shape
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


class _Later(NamedTuple):
    """A step that pauses until `at`; ordered by that."""

    at: float
    step: int
    lane: LaneKey
    ready_s: float


class Snapshot:
    """One process's resident view; not safe to share between tasks."""

    def __init__(self) -> None:
        self.lanes: dict[LaneKey, ResidentLane] = {}
        self.places: list[Place] = []
        self.bounds = Bounds(grounds={}, granted={})
        self._rules = ResidentBounds()
        self._shapes: dict[int, Shape] = {}
        self._since_xid = 0
        self._recent: dict[int, int] = {}
        self._later: list[_Later] = []

    def __len__(self) -> int:
        """Steps that may be placed now, stale entries included."""
        return sum(len(lane) for lane in self.lanes.values())

    async def advance(self, tx: Tx, *, now: float) -> int:
        """Take in what was queued since the last call; return how many entries were new.

        `now` is in seconds of a clock that never jumps, the same as for `wake_later`.
        """
        recent: dict[int, int] = {}
        try:
            if self._since_xid:
                horizon, page = await queue.news(tx, self._since_xid)
                await self._learn_shapes(tx, page)
                fresh = self._take_in(page, now, horizon, recent)
            else:
                horizon = await queue.horizon(tx)
                fresh = await self._read_whole(tx, now, horizon, recent)
        except BaseException:
            self._forget()  # half of it taken in: begin anew
            raise
        self._since_xid = horizon
        self._recent = recent
        return fresh

    async def _read_whole(self, tx: Tx, now: float, horizon: int, recent: dict[int, int]) -> int:
        fresh = 0
        # Nothing was seen before, so only what will be read again has to be known.
        async with aclosing(queue.whole(tx, known_from=horizon)) as pages:
            async for page in pages:
                await self._learn_shapes(tx, page)
                fresh += self._take_in(page, now, horizon, recent)
        return fresh

    def _take_in(
        self, page: Sequence[Entry], now: float, horizon: int, recent: dict[int, int]
    ) -> int:
        """Queue what is new of a page; only rows at or above `horizon` will be read again."""
        fresh = 0
        for row in page:
            step, project, shape, group, priority, due_in_s, ready_s, xid = row
            if xid is not None:
                if xid >= horizon:
                    recent[step] = xid
                if self._recent.get(step) == xid:
                    continue
            fresh += 1
            if due_in_s is None:
                self._queue((project, shape, group, priority), step, ready_s)
            else:
                lane = (project, shape, group, priority)
                later = _Later(now + due_in_s, step, lane, ready_s)
                heapq.heappush(self._later, later)
        return fresh

    def _forget(self) -> None:
        self.lanes.clear()
        self._since_xid = 0
        self._recent = {}
        self._later = []

    async def look_around(self, tx: Tx) -> None:
        """Read the clusters, a row each with what they have free, and what the rules allow."""
        waiting = {(key[0], key[2]) for key, lane in self.lanes.items() if len(lane)}
        self.bounds = await self._rules.look(tx, waiting)
        self.places = [
            Place(
                id=row["id"],
                name=row["cluster_id"],
                kind=ClusterKind(row["kind"]),
                enabled=row["enabled"],
                silent_s=row["silent_s"],
                unfit=row["unfit"],
                rooms={name: Room(*amounts) for name, amounts in row["capacity"].items()},
            )
            for row in await clusters.places(tx)
        ]

    @property
    def now(self) -> float:
        """The database's Unix time when it was last looked around, as `since` of lanes is."""
        return self._rules.now

    @property
    def rules(self) -> int:
        """The version of the rules that `bounds` was made of."""
        return self._rules.version

    def wake_later(self, now: float) -> float | None:
        """Queue what has paused long enough; return when the next one is due."""
        while self._later and self._later[0].at <= now:
            due = heapq.heappop(self._later)
            self._queue(due.lane, due.step, due.ready_s)
        return self._later[0].at if self._later else None

    def put_back(self, lane: LaneKey, steps: Iterable[int], since: float) -> None:
        """Steps that could not be written after all wait again, at the end of their lane."""
        for step in steps:
            self.lanes[lane].append(step, since)

    def _queue(self, key: LaneKey, step: int, ready_s: float) -> None:
        lane = self.lanes.get(key)
        if lane is None:
            lane = self.lanes[key] = ResidentLane(self._shapes[key[1]])
        lane.append(step, ready_s)

    async def _learn_shapes(self, tx: Tx, page: Iterable[Entry]) -> None:
        missing = {row[2] for row in page} - self._shapes.keys()
        if missing:
            for shape, (requests, nodes) in (
                await documents.read_shapes(tx, sorted(missing))
            ).items():
                self._shapes[shape] = Shape(requests, nodes)
