"""Placement: which waiting steps go where, and why the others stay.

Steps that ask for the same in the same project stand in one lane, first come first served. Only
the heads of lanes are looked at, so a round costs what it places plus the number of lanes, never
the number of steps that wait.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol, Self

from verderer.core.explain import Reason, why_not
from verderer.core.model.cluster import Place
from verderer.core.model.resources import Resources

LaneKey = tuple[int, int]
"""Project id and shape id."""


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
    """Waiting steps of one shape in one project, the longest waiting first."""

    shape: Shape
    priority: int

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


@dataclass(slots=True)
class _Choice:
    """The places whose nodes are large enough for one shape, with what is asked of each."""

    asks: tuple[tuple[str, int], ...]
    candidates: list[tuple[_Free, list[tuple[str, int, int]]]]
    """Beside each: resource, amount on all nodes together, and all there is of it."""

    @classmethod
    def among(cls, free: Iterable[_Free], shape: Shape) -> Self:
        asks = shape.total.items()
        return cls(
            asks,
            [
                (f, [(name, n, max(1, f.place.rooms[name].allocatable)) for name, n in asks])
                for f in free
                if all(
                    name in f.place.rooms and f.place.rooms[name].largest >= amount
                    for name, amount in shape.requests.items()
                )
            ],
        )

    def take(self) -> int | None:
        """Take room for one step where most is left of what is then scarcest; where, if anywhere.

        This runs for every step that is placed, so it makes nothing but numbers.
        """
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
        return best.place.id


def place(lanes: Mapping[LaneKey, Lane], places: Sequence[Place], *, limit: int) -> Plan:
    """Propose up to `limit` assignments.

    Order: higher priority first, then who became ready first. A lane whose head does not fit is
    closed for the round and does not hold up the others. Among clusters where a step fits, the
    one that stays emptiest gets it.
    """
    free = [_Free(p, {n: r.free for n, r in p.rooms.items()}) for p in places if p.online]
    plan = Plan()
    choices: dict[LaneKey, _Choice] = {}
    heads = [(-lane.priority, lane.since(0), key, 0) for key, lane in lanes.items() if len(lane)]
    heapq.heapify(heads)
    while heads:
        if len(plan.assignments) >= limit:
            plan.more = True
            break
        priority, _, key, position = heads[0]
        lane = lanes[key]
        choice = choices.get(key)
        if choice is None:
            choice = choices[key] = _Choice.among(free, lane.shape)
        chosen = choice.take()
        if chosen is None:
            heapq.heappop(heads)
            plan.holds[key] = explain(lane.shape, places, free)
            continue
        plan.assignments.append(Assignment(lane.step(position), chosen, key))
        position += 1
        if position < len(lane):
            heapq.heapreplace(heads, (priority, lane.since(position), key, position))
        else:
            heapq.heappop(heads)
    return plan


def explain(shape: Shape, places: Iterable[Place], free: Sequence[_Free]) -> tuple[Reason, ...]:
    """One reason for every cluster."""
    left = {f.place.id: f.left for f in free}
    return tuple(why_not(shape.requests, shape.nodes, p, left.get(p.id, {})) for p in places)
