"""Placement: who goes where, and why the others stay."""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass, field

from hypothesis import given
from hypothesis import strategies as st

from verderer.core.explain import NEVER, Why
from verderer.core.model.cluster import ClusterKind, Place, Room
from verderer.core.model.resources import Resources
from verderer.core.placement import Shape, place


@dataclass
class Line:
    """A lane of steps that became ready at the given times."""

    shape: Shape
    times: list[float]
    first_id: int = 0
    priority: int = 0
    steps: list[int] = field(init=False)

    def __post_init__(self) -> None:
        self.steps = list(range(self.first_id, self.first_id + len(self.times)))

    def __len__(self) -> int:
        return len(self.times)

    def since(self, position: int) -> float:
        return self.times[position]

    def step(self, position: int) -> int:
        return self.steps[position]


def asks(nodes: int = 1, **amounts: int) -> Shape:
    return Shape(Resources.of(amounts), nodes)


def cluster(number: int = 1, *, silent_s: float = 0.0, largest: int = 0, **amounts: int) -> Place:
    rooms = {name: Room(n, largest or n, 0) for name, n in amounts.items()}
    return Place(
        id=number, name=f"c{number}", kind=ClusterKind.LOCAL, silent_s=silent_s, rooms=rooms
    )


def test_the_longest_waiting_goes_first_across_lanes() -> None:
    lanes = {(1, 1): Line(asks(cpu=1), [2.0]), (2, 1): Line(asks(cpu=1), [1.0], first_id=10)}
    plan = place(lanes, [cluster(cpu=1)], limit=10)
    assert [a.step for a in plan.assignments] == [10]
    assert plan.holds[1, 1][0].why is Why.CAPACITY


def test_a_higher_priority_goes_before_who_waits_longer() -> None:
    lanes = {
        (1, 1): Line(asks(cpu=1), [1.0]),
        (2, 1): Line(asks(cpu=1), [2.0], first_id=10, priority=5),
    }
    assert [a.step for a in place(lanes, [cluster(cpu=1)], limit=1).assignments] == [10]


def test_a_head_that_does_not_fit_holds_up_its_own_lane_only() -> None:
    lanes = {
        (1, 1): Line(asks(cpu=9), [1.0, 1.0]),
        (1, 2): Line(asks(cpu=1), [2.0, 3.0], first_id=10),
    }
    plan = place(lanes, [cluster(cpu=4)], limit=10)
    assert [a.step for a in plan.assignments] == [10, 11]
    assert plan.holds[1, 1][0].why is Why.NODE_TOO_SMALL


def test_work_is_spread_over_the_emptiest_clusters() -> None:
    lanes = {(1, 1): Line(asks(cpu=1), [1.0] * 6)}
    plan = place(lanes, [cluster(1, cpu=4), cluster(2, cpu=4)], limit=10)
    assert Counter(a.cluster for a in plan.assignments) == {1: 3, 2: 3}


def test_a_step_over_several_nodes_needs_each_of_them_and_all_together() -> None:
    lanes = {(1, 1): Line(asks(2, gpu=8), [1.0])}
    assert place(lanes, [cluster(gpu=16, largest=8)], limit=9).assignments
    small = place(lanes, [cluster(gpu=16, largest=4)], limit=9)
    assert small.holds[1, 1][0].why is Why.NODE_TOO_SMALL
    few = place(lanes, [cluster(gpu=8, largest=8)], limit=9)
    assert few.holds[1, 1][0].why is Why.CLUSTER_TOO_SMALL


def test_an_offline_cluster_gets_nothing_and_says_since_when() -> None:
    lanes = {(1, 1): Line(asks(cpu=1), [1.0])}
    plan = place(lanes, [cluster(cpu=4, silent_s=60)], limit=9)
    (reason,) = plan.holds[1, 1]
    assert (reason.why, reason.seconds) == (Why.OFFLINE, 60)


def test_the_limit_asks_for_another_round() -> None:
    lanes = {(1, 1): Line(asks(cpu=1), [1.0] * 5)}
    plan = place(lanes, [cluster(cpu=9)], limit=3)
    assert len(plan.assignments) == 3
    assert plan.more


def test_every_cluster_is_named_when_nothing_fits() -> None:
    lanes = {(1, 1): Line(asks(gpu=1), [1.0])}
    plan = place(lanes, [cluster(1, cpu=4), cluster(2, gpu=0, cpu=1)], limit=9)
    reasons = plan.holds[1, 1]
    assert [r.cluster for r in reasons] == ["c1", "c2"]
    assert all(r.why in NEVER for r in reasons)


_AMOUNTS = st.dictionaries(st.sampled_from(["cpu", "memory", "gpu"]), st.integers(1, 12))


@given(
    shapes=st.lists(st.tuples(_AMOUNTS, st.integers(1, 3)), min_size=1, max_size=6),
    lengths=st.lists(st.integers(0, 8), min_size=6, max_size=6),
    places=st.lists(_AMOUNTS, max_size=4),
    limit=st.integers(0, 40),
)
def test_no_plan_promises_more_than_there_is_and_every_head_left_behind_has_a_reason(
    shapes: list[tuple[dict[str, int], int]],
    lengths: list[int],
    places: list[dict[str, int]],
    limit: int,
) -> None:
    lanes = {
        (1, i): Line(Shape(Resources.of(amounts), nodes), [float(j) for j in range(n)], i * 100)
        for i, ((amounts, nodes), n) in enumerate(zip(shapes, lengths, strict=False))
    }
    there = [cluster(i + 1, **amounts) for i, amounts in enumerate(places)]
    plan = place(lanes, there, limit=limit)
    used: defaultdict[tuple[int, str], int] = defaultdict(int)
    for assignment in plan.assignments:
        for name, amount in lanes[assignment.lane].shape.total.items():
            used[assignment.cluster, name] += amount
    for (number, name), amount in used.items():
        assert amount <= places[number - 1][name]
    assert len({a.step for a in plan.assignments}) == len(plan.assignments) <= limit
    placed = Counter(a.lane for a in plan.assignments)
    for key, lane in lanes.items():
        if placed[key] < len(lane) and not plan.more:
            assert len(plan.holds[key]) == len(there)
            assert all(r.why is not Why.PLACING for r in plan.holds[key])
