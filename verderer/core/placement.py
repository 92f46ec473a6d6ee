"""Placement: which waiting steps go where, and why the others stay.

Steps that ask for the same in the same project stand in one lane, first come first served. Only
the heads of lanes are looked at, so a round costs what it places plus the number of lanes, never
the number of steps that wait.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

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

    @property
    def total(self) -> Resources:
        return self.requests.scaled(self.nodes)


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


@dataclass(frozen=True, slots=True)
class Assignment:
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

    def fits(self, shape: Shape) -> bool:
        return all(
            self.left.get(name, 0) >= amount * shape.nodes
            and self.place.rooms[name].largest >= amount
            for name, amount in shape.requests.items()
        )

    def take(self, total: Resources) -> None:
        for name, amount in total.items():
            self.left[name] -= amount

    def emptiness(self, total: Resources) -> float:
        """Share that would be left of the scarcest resource asked for; 1.0 when nothing is."""
        return min(
            (
                (self.left[name] - amount) / max(1, self.place.rooms[name].allocatable)
                for name, amount in total.items()
            ),
            default=1.0,
        )


def place(lanes: Mapping[LaneKey, Lane], places: Sequence[Place], *, limit: int) -> Plan:
    """Propose up to `limit` assignments.

    Order: higher priority first, then who became ready first. A lane whose head does not fit is
    closed for the round and does not hold up the others. Among clusters where a step fits, the
    one that stays emptiest gets it.
    """
    free = [_Free(p, {n: r.free for n, r in p.rooms.items()}) for p in places if p.online]
    plan = Plan()
    heads = [(-lane.priority, lane.since(0), key, 0) for key, lane in lanes.items() if len(lane)]
    heapq.heapify(heads)
    while heads:
        if len(plan.assignments) >= limit:
            plan.more = True
            break
        priority, _, key, position = heads[0]
        lane = lanes[key]
        chosen = _choose(free, lane.shape)
        if chosen is None:
            heapq.heappop(heads)
            plan.holds[key] = explain(lane.shape, places, free)
            continue
        chosen.take(lane.shape.total)
        plan.assignments.append(Assignment(lane.step(position), chosen.place.id, key))
        position += 1
        if position < len(lane):
            heapq.heapreplace(heads, (priority, lane.since(position), key, position))
        else:
            heapq.heappop(heads)
    return plan


def _choose(free: Sequence[_Free], shape: Shape) -> _Free | None:
    fitting = [f for f in free if f.fits(shape)]
    if len(fitting) < 2:
        return fitting[0] if fitting else None
    total = shape.total
    return max(fitting, key=lambda f: f.emptiness(total))


def explain(shape: Shape, places: Iterable[Place], free: Sequence[_Free]) -> tuple[Reason, ...]:
    """One reason for every cluster."""
    left = {f.place.id: f.left for f in free}
    return tuple(why_not(shape.requests, shape.nodes, p, left.get(p.id, {})) for p in places)
