"""Placement: which waiting steps go where, and why the others stay.

Steps that ask for the same in the same project and resource group stand in one lane, first come
first served. Only the heads of lanes are looked at, so a round costs what it places plus the
number of lanes, never the number of steps that wait.
"""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple, Protocol, Self

from verderer.core.explain import Reason, Why, over_quota, why_not
from verderer.core.governance.model import (
    ANYWHERE,
    PATIENCE_S,
    Account,
    Bounds,
    Ground,
    Order,
    points,
)
from verderer.core.governance.shares import dominant, standing
from verderer.core.model.cluster import Place
from verderer.core.model.resources import Resources

LaneKey = tuple[int, int, int, int]
"""Project id, shape id, resource group id and priority."""
HoldKey = tuple[int, int, int]
"""The same without the priority: what waits for one reason."""


@dataclass(frozen=True, slots=True)
class Shape:
    """What a step asks for: `requests` on each of `nodes` nodes."""

    requests: Resources
    nodes: int = 1
    total: Resources = field(init=False, compare=False, repr=False)
    """On all nodes together."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "total", self.requests.scaled(self.nodes))


class Lane(Protocol):
    """Waiting steps of one shape, project, group and priority, the longest waiting first."""

    shape: Shape

    def __len__(self) -> int: ...

    def since(self, position: int) -> float:
        """Seconds of any clock that all lanes share, when the step at `position` became ready."""
        ...

    def step(self, position: int) -> int:
        """The id of the step at `position`, 0 being the head."""
        ...


class Assignment(NamedTuple):
    """A step and the cluster that it should go to."""

    step: int
    cluster: int
    lane: LaneKey


@dataclass(slots=True)
class Plan:
    """A proposal: whoever writes it checks it again against the rows of that moment."""

    assignments: list[Assignment] = field(default_factory=list)
    holds: dict[LaneKey, tuple[Reason, ...]] = field(default_factory=dict)
    """Lanes whose head fits nowhere now, with a reason for every cluster considered."""
    more: bool = False
    """The limit was reached with work left that may fit: come again at once."""


@dataclass(slots=True)
class _Free:
    """What is left of a place while a plan is made."""

    place: Place
    left: dict[str, int]
    kept: dict[str, int] = field(default_factory=dict)
    """What is kept free for steps that have waited long, and not part of `left`."""


class _Purse:
    """What is left of a resource group, and who has how much of it, while a plan is made."""

    __slots__ = ("_amounts", "_totals", "contended", "free", "ground", "keeps", "left", "shares")

    def __init__(self, ground: Ground, free: Iterable[_Free], *, contended: bool) -> None:
        self.ground = ground
        self.free = [f for f in free if ground.has(f.place.id)]
        self.left = {
            name: account.left
            for name, account in ground.accounts.items()
            if account.left is not None
        }
        self.contended = contended and ground.order is Order.FAIR
        self.keeps = False
        """Something is kept free for a step of this group."""
        self.shares: dict[int, float] = {}
        self._amounts: dict[int, dict[str, float]] = {}
        self._totals = self._whole() if self.contended else {}

    def share(self, project: int) -> float:
        """The project's dominant share, as long as there are others to compare it with."""
        if not self.contended:
            return 0.0
        if (known := self.shares.get(project)) is None:
            amounts = standing(self.ground.holdings.get(project, {}))
            self._amounts[project] = amounts
            known = self.shares[project] = dominant(amounts, self._totals)
        return known

    def spend(self, project: int, asks: Iterable[tuple[str, int]]) -> None:
        """Book one step."""
        for name, amount in asks:
            if name in self.left:
                self.left[name] -= amount
        if self.contended:
            amounts, share = self._amounts[project], self.shares[project]
            for name, amount in asks:
                if whole := self._totals.get(name):
                    amounts[name] = now = amounts.get(name, 0.0) + amount
                    share = max(share, now / whole)
            self.shares[project] = share

    def keep(self, asks: Iterable[tuple[str, int]]) -> None:
        """Keep what is left of the quota for a step that does not fit yet."""
        for name, amount in asks:
            if name in self.left:
                self.left[name] = max(0, self.left[name] - amount)

    def _whole(self) -> dict[str, int]:
        totals: Counter[str] = Counter()
        for free in self.free:
            for name, room in free.place.rooms.items():
                totals[name] += room.allocatable
        quotas = {n: a.quota for n, a in self.ground.accounts.items() if a.quota is not None}
        return {n: min(total, quotas.get(n, total)) for n, total in totals.items()}


@dataclass(slots=True)
class _Choice:
    """The places whose nodes are large enough for one shape, with what is asked of each."""

    project: int
    purse: _Purse
    asks: tuple[tuple[str, int], ...]
    candidates: list[tuple[_Free, list[tuple[str, int, int]]]]
    """Beside each: resource, amount on all nodes together, and all there is of it."""
    bounded: tuple[tuple[str, int], ...] = ()
    """The part of `asks` that the group has a quota for."""

    def keep(self) -> None:
        """Keep free what the step asks for where the smallest part of it is missing."""
        self.purse.keeps = True
        self.purse.keep(self.asks)
        if not self.candidates:
            return

        def lacking(candidate: tuple[_Free, list[tuple[str, int, int]]]) -> float:
            left = candidate[0].left
            return max((max(0, n - left[name]) / n for name, n, _ in candidate[1]), default=0.0)

        free = min(self.candidates, key=lacking)[0]
        for name, amount in self.asks:
            taken = min(amount, free.left[name])
            free.left[name] -= taken
            free.kept[name] = free.kept.get(name, 0) + taken

    @classmethod
    def among(cls, project: int, purse: _Purse, shape: Shape) -> Self:
        asks = shape.total.items()
        candidates = [
            (f, [(name, n, max(1, f.place.rooms[name].allocatable)) for name, n in asks])
            for f in purse.free
            if all(
                name in f.place.rooms and f.place.rooms[name].largest >= amount
                for name, amount in shape.requests.items()
            )
        ]
        bounded = tuple((name, n) for name, n in asks if name in purse.left)
        return cls(project, purse, asks, candidates, bounded)

    def take(self) -> int | None:
        """Take room for one step where most is left of what is then scarcest; where, if anywhere.

        This runs for every step that is placed, so it makes nothing but numbers.
        """
        for name, amount in self.bounded:
            if self.purse.left[name] < amount:
                return None
        best, most = None, -1.0
        for free, asks in self.candidates:
            left, scarcest = free.left, 1.0
            for name, amount, whole in asks:
                rest = left[name] - amount
                if rest < 0:
                    break
                if rest < scarcest * whole:
                    scarcest = rest / whole
            else:
                if scarcest > most:
                    best, most = free, scarcest
        if best is None:
            return None
        for name, amount in self.asks:
            best.left[name] -= amount
        self.purse.spend(self.project, self.asks)
        return best.place.id


_Head = tuple[int, float, float, LaneKey, int]
"""Points upside down, share, since when, lane, position in it."""


class _Round:
    """One plan in the making."""

    def __init__(
        self,
        lanes: Mapping[LaneKey, Lane],
        places: Sequence[Place],
        bounds: Bounds | None,
        now: float | None,
    ) -> None:
        self.plan = Plan()
        self._lanes = lanes
        self._places = places
        self._bounds = bounds
        self._now = now
        self._free = {
            p.id: _Free(p, {n: r.free for n, r in p.rooms.items()}) for p in places if p.online
        }
        waiting = {(key[0], key[2]) for key, lane in lanes.items() if len(lane)}
        self._projects = Counter(group for _, group in waiting)
        self._purses: dict[int, _Purse] = {}
        self._choices: dict[LaneKey, _Choice] = {}
        self._heads: list[_Head] = []

    def run(self, limit: int) -> Plan:
        for key, lane in self._lanes.items():
            if len(lane):
                self._open(key, lane)
        heapq.heapify(self._heads)
        while self._heads:
            if len(self.plan.assignments) >= limit:
                self.plan.more = True
                break
            self._next()
        return self.plan

    def _open(self, key: LaneKey, lane: Lane) -> None:
        project, _, group, priority = key
        ground = ANYWHERE if self._bounds is None else self._bounds.ground(project, group)
        if ground is None:
            name = "" if self._bounds is None else self._bounds.name(group)
            self.plan.holds[key] = (Reason(why=Why.NOT_GRANTED, group=name),)
            return
        if (purse := self._purses.get(group)) is None:
            contended = self._projects[group] > 1
            purse = self._purses[group] = _Purse(ground, self._free.values(), contended=contended)
        self._choices[key] = _Choice.among(project, purse, lane.shape)
        since = lane.since(0)
        self._heads.append((-self._points(priority, since), purse.share(project), since, key, 0))

    def _points(self, priority: int, since: float) -> int:
        return points(priority, 0.0 if self._now is None else self._now - since)

    def _next(self) -> None:
        rank, share, since, key, position = self._heads[0]
        lane, choice = self._lanes[key], self._choices[key]
        now = choice.purse.share(key[0])
        if now > share:  # it was given something since this was put here
            heapq.heapreplace(self._heads, (rank, now, since, key, position))
            return
        chosen = choice.take()
        if chosen is None:
            heapq.heappop(self._heads)
            self.plan.holds[key] = found = self._explain(lane.shape, choice.purse)
            waited = 0.0 if self._now is None else self._now - since
            if waited > PATIENCE_S and not choice.purse.keeps and _waiting_helps(found):
                choice.keep()
            return
        self.plan.assignments.append(Assignment(lane.step(position), chosen, key))
        position += 1
        if position < len(lane):
            after, since = choice.purse.share(key[0]), lane.since(position)
            rank = -self._points(key[3], since)
            heapq.heapreplace(self._heads, (rank, after, since, key, position))
        else:
            heapq.heappop(self._heads)

    def _explain(self, shape: Shape, purse: _Purse) -> tuple[Reason, ...]:
        """What the group has no quota left for, and one reason for every cluster of it."""
        mine = [p for p in self._places if purse.ground.has(p.id)]
        found = [_why_not(shape, p, self._free.get(p.id)) for p in mine]
        if not mine and self._places:
            found = [Reason(why=Why.NO_CLUSTER, group=purse.ground.name)]
        quotas = {
            name: Account(a.quota, (a.quota or 0) - purse.left.get(name, 0))
            for name, a in purse.ground.accounts.items()
        }
        quota = over_quota(shape.total, purse.ground.name, quotas)
        return (quota, *found) if quota else tuple(found)


def _why_not(shape: Shape, place: Place, free: _Free | None) -> Reason:
    """One cluster's reason; what is kept free there for another step is said to be that."""
    if free is None:
        return why_not(shape.requests, shape.nodes, place, {})
    found = why_not(shape.requests, shape.nodes, place, free.left)
    if found.why is not Why.CAPACITY or not free.kept:
        return found
    whole = {name: n + free.kept.get(name, 0) for name, n in free.left.items()}
    other = why_not(shape.requests, shape.nodes, place, whole)
    return found if other.why is Why.CAPACITY else replace(found, why=Why.KEPT)


def _waiting_helps(reasons: Iterable[Reason]) -> bool:
    """Whether what comes free can start it: its quota is enough, and so is some cluster."""
    whys = {reason.why for reason in reasons}
    return Why.OVER_QUOTA not in whys and bool(whys & {Why.CAPACITY, Why.QUOTA, Why.KEPT})


def place(
    lanes: Mapping[LaneKey, Lane],
    places: Sequence[Place],
    *,
    limit: int,
    bounds: Bounds | None = None,
    now: float | None = None,
) -> Plan:
    """Propose up to `limit` assignments within `bounds`; None: anywhere, for anybody.

    Order: more points first, which are the priority and, by the lanes' clock, what was waited
    until `now`; in a group with a fair order then whose project has the least of it; then who
    became ready first. A lane whose head does not fit is closed for the round and does not hold up
    the others, until it has waited for `PATIENCE_S`: then the first of its group keeps what comes
    free on the cluster where it lacks the least, so that smaller steps cannot keep it out for
    ever. Among clusters where a step fits, the one that stays emptiest gets it.
    """
    return _Round(lanes, places, bounds, now).run(limit)
