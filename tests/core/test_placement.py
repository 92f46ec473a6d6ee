"""Placement: who goes where, and why the others stay."""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass, field, replace

from hypothesis import given
from hypothesis import strategies as st

from verderer.core.explain import NEVER, Why
from verderer.core.governance.model import (
    PATIENCE_S,
    Account,
    Bounds,
    Ground,
    Holding,
    Order,
    Priority,
)
from verderer.core.model.cluster import ClusterKind, Place, Room
from verderer.core.model.resources import Resources
from verderer.core.placement import Shape, place


@dataclass
class Line:
    """A lane of steps that became ready at the given times."""

    shape: Shape
    times: list[float]
    first_id: int = 0
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
    lanes = {
        (1, 1, 1, 0): Line(asks(cpu=1), [2.0]),
        (2, 1, 1, 0): Line(asks(cpu=1), [1.0], first_id=10),
    }
    plan = place(lanes, [cluster(cpu=1)], limit=10)
    assert [a.step for a in plan.assignments] == [10]
    assert plan.holds[1, 1, 1, 0][0].why is Why.CAPACITY


def test_a_higher_priority_goes_before_who_waits_longer() -> None:
    lanes = {
        (1, 1, 1, 0): Line(asks(cpu=1), [1.0]),
        (2, 1, 1, 5): Line(asks(cpu=1), [2.0], first_id=10),
    }
    assert [a.step for a in place(lanes, [cluster(cpu=1)], limit=1).assignments] == [10]


def test_a_head_that_does_not_fit_holds_up_its_own_lane_only() -> None:
    lanes = {
        (1, 1, 1, 0): Line(asks(cpu=9), [1.0, 1.0]),
        (1, 2, 1, 0): Line(asks(cpu=1), [2.0, 3.0], first_id=10),
    }
    plan = place(lanes, [cluster(cpu=4)], limit=10)
    assert [a.step for a in plan.assignments] == [10, 11]
    assert plan.holds[1, 1, 1, 0][0].why is Why.NODE_TOO_SMALL


def test_work_is_spread_over_the_emptiest_clusters() -> None:
    lanes = {(1, 1, 1, 0): Line(asks(cpu=1), [1.0] * 6)}
    plan = place(lanes, [cluster(1, cpu=4), cluster(2, cpu=4)], limit=10)
    assert Counter(a.cluster for a in plan.assignments) == {1: 3, 2: 3}


def test_a_step_over_several_nodes_needs_each_of_them_and_all_together() -> None:
    lanes = {(1, 1, 1, 0): Line(asks(2, gpu=8), [1.0])}
    assert place(lanes, [cluster(gpu=16, largest=8)], limit=9).assignments
    small = place(lanes, [cluster(gpu=16, largest=4)], limit=9)
    assert small.holds[1, 1, 1, 0][0].why is Why.NODE_TOO_SMALL
    few = place(lanes, [cluster(gpu=8, largest=8)], limit=9)
    assert few.holds[1, 1, 1, 0][0].why is Why.CLUSTER_TOO_SMALL


def test_an_offline_cluster_gets_nothing_and_says_since_when() -> None:
    lanes = {(1, 1, 1, 0): Line(asks(cpu=1), [1.0])}
    plan = place(lanes, [cluster(cpu=4, silent_s=60)], limit=9)
    (reason,) = plan.holds[1, 1, 1, 0]
    assert (reason.why, reason.seconds) == (Why.OFFLINE, 60)


def test_the_limit_asks_for_another_round() -> None:
    lanes = {(1, 1, 1, 0): Line(asks(cpu=1), [1.0] * 5)}
    plan = place(lanes, [cluster(cpu=9)], limit=3)
    assert len(plan.assignments) == 3
    assert plan.more


def test_every_cluster_is_named_when_nothing_fits() -> None:
    lanes = {(1, 1, 1, 0): Line(asks(gpu=1), [1.0])}
    plan = place(lanes, [cluster(1, cpu=4), cluster(2, gpu=0, cpu=1)], limit=9)
    reasons = plan.holds[1, 1, 1, 0]
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
        (1, i, 1, 0): Line(
            Shape(Resources.of(amounts), nodes), [float(j) for j in range(n)], i * 100
        )
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


def ground(**changes: object) -> Ground:
    return replace(Ground(id=7, name="rg"), **changes)  # type: ignore[arg-type]


def bounds(*grounds: Ground, projects: int = 9) -> Bounds:
    everything = frozenset(g.id for g in grounds)
    return Bounds(
        grounds={g.id: g for g in grounds}, granted=dict.fromkeys(range(projects), everything)
    )


def test_a_group_s_steps_stay_on_its_clusters_however_full_they_are() -> None:
    lanes = {(1, 1, 7, 0): Line(asks(cpu=1), [1.0] * 5)}
    there = [cluster(1, cpu=2), cluster(2, cpu=100)]
    plan = place(lanes, there, limit=9, bounds=bounds(ground(clusters=frozenset({1}))))
    assert [a.cluster for a in plan.assignments] == [1, 1]
    assert [(r.why, r.cluster) for r in plan.holds[1, 1, 7, 0]] == [(Why.CAPACITY, "c1")]


def test_a_quota_is_never_passed_and_says_what_is_missing() -> None:
    lanes = {(1, 1, 7, 0): Line(asks(gpu=8), [1.0] * 9)}
    rg = ground(accounts={"gpu": Account(64, 44)})
    plan = place(lanes, [cluster(gpu=1000)], limit=99, bounds=bounds(rg))
    assert len(plan.assignments) == 2
    reason = plan.holds[1, 1, 7, 0][0]
    assert (reason.why, reason.asked, reason.free, reason.total) == (Why.QUOTA, 8, 4, 64)


def test_what_a_quota_does_not_name_is_unlimited() -> None:
    lanes = {(1, 1, 7, 0): Line(asks(gpu=8, cpu=1), [1.0] * 3)}
    rg = ground(accounts={"gpu": Account(None, 999)})
    assert len(place(lanes, [cluster(gpu=99, cpu=9)], limit=9, bounds=bounds(rg)).assignments) == 3


def test_more_than_the_whole_quota_is_told_apart_from_a_quota_in_use() -> None:
    lanes = {(1, 1, 7, 0): Line(asks(gpu=9, cpu=2), [1.0])}
    rg = ground(accounts={"gpu": Account(8, 0), "cpu": Account(2, 2)})
    plan = place(lanes, [cluster(gpu=99, cpu=9)], limit=9, bounds=bounds(rg))
    reason = plan.holds[1, 1, 7, 0][0]
    assert (reason.why, reason.resource) == (Why.OVER_QUOTA, "gpu")
    assert reason.why in NEVER


def test_without_a_grant_nothing_is_placed() -> None:
    lanes = {(1, 1, 7, 0): Line(asks(cpu=1), [1.0]), (1, 1, 8, 0): Line(asks(cpu=1), [1.0])}
    allowed = Bounds(grounds={7: ground(), 8: ground(id=8)}, granted={1: frozenset({8})})
    plan = place(lanes, [cluster(cpu=9)], limit=9, bounds=allowed)
    assert [a.lane for a in plan.assignments] == [(1, 1, 8, 0)]
    assert [r.why for r in plan.holds[1, 1, 7, 0]] == [Why.NOT_GRANTED]


def test_a_shared_group_goes_round_by_shares() -> None:
    """Project 1 came first with all its work; project 2 gets its half all the same."""
    lanes = {
        (1, 1, 7, 0): Line(asks(cpu=1), [0.0] * 50),
        (2, 1, 7, 0): Line(asks(cpu=1), [9.0] * 50, first_id=100),
    }
    plan = place(lanes, [cluster(cpu=20)], limit=99, bounds=bounds(ground()))
    assert Counter(a.lane[0] for a in plan.assignments) == {1: 10, 2: 10}
    by_age = bounds(ground(order=Order.FIFO))
    plan = place(lanes, [cluster(cpu=20)], limit=99, bounds=by_age)
    assert Counter(a.lane[0] for a in plan.assignments) == {1: 20}


def test_what_was_held_lately_counts_as_much_as_what_is_held() -> None:
    lanes = {
        (1, 1, 7, 0): Line(asks(cpu=1), [0.0] * 50),
        (2, 1, 7, 0): Line(asks(cpu=1), [9.0] * 50, first_id=100),
    }
    busy = ground(holdings={1: {"cpu": Holding(reserved=0, recent=10)}})
    plan = place(lanes, [cluster(cpu=15)], limit=99, bounds=bounds(busy))
    assert Counter(a.lane[0] for a in plan.assignments) == {1: 5, 2: 10}


@given(
    queues=st.lists(
        st.tuples(st.integers(1, 4), st.integers(7, 9), st.integers(1, 5), st.integers(0, 12)),
        max_size=8,
        unique_by=lambda q: q[:3],
    ),
    quotas=st.dictionaries(st.integers(7, 9), st.integers(0, 30)),
    homes=st.dictionaries(st.integers(7, 9), st.frozensets(st.integers(1, 3))),
    sizes=st.lists(st.integers(0, 30), min_size=3, max_size=3),
    limit=st.integers(0, 60),
)
def test_no_plan_leaves_a_group_or_passes_its_quota(
    queues: list[tuple[int, int, int, int]],
    quotas: dict[int, int],
    homes: dict[int, frozenset[int]],
    sizes: list[int],
    limit: int,
) -> None:
    lanes = {
        (project, amount, group, 0): Line(asks(cpu=amount), [float(i) for i in range(n)], i * 100)
        for i, (project, group, amount, n) in enumerate(queues)
    }
    grounds = [
        ground(
            id=g,
            clusters=homes.get(g),
            accounts={"cpu": Account(quotas[g], 0)} if g in quotas else {},
        )
        for g in (7, 8, 9)
    ]
    there = [cluster(i + 1, cpu=n) for i, n in enumerate(sizes)]
    plan = place(lanes, there, limit=limit, bounds=bounds(*grounds))
    used: Counter[int] = Counter()
    given_out: Counter[int] = Counter()
    for step, at, (_, amount, group, _) in plan.assignments:
        assert homes.get(group) is None or at in homes[group], step
        used[group] += amount
        given_out[at] += amount
    assert all(used[g] <= quotas[g] for g in quotas)
    assert all(given_out[i + 1] <= n for i, n in enumerate(sizes))
    placed = Counter(a.lane for a in plan.assignments)
    if not plan.more:
        assert all(plan.holds[key] for key, lane in lanes.items() if placed[key] < len(lane))


def test_a_long_wait_makes_up_for_a_low_priority() -> None:
    low, normal = (1, 1, 1, Priority.LOW), (2, 1, 1, Priority.NORMAL)
    lanes = {low: Line(asks(cpu=1), [0.0]), normal: Line(asks(cpu=1), [0.0], first_id=10)}
    early = place(lanes, [cluster(cpu=1)], limit=9, now=60.0)
    assert [a.lane for a in early.assignments] == [normal]
    lanes[normal] = Line(asks(cpu=1), [4000.0], first_id=10)
    late = place(lanes, [cluster(cpu=1)], limit=9, now=4001.0)
    assert [a.lane for a in late.assignments] == [low]


class TestALargeStepAmongSmallOnes:
    """Eight of eight are wanted, four are free, and small steps come all the time."""

    big, small = (1, 1, 7, 0), (2, 1, 7, 0)

    def lanes(self) -> dict[tuple[int, int, int, int], Line]:
        return {
            self.big: Line(asks(gpu=8), [0.0]),
            self.small: Line(asks(gpu=1), [1.0] * 9, first_id=10),
        }

    def test_small_ones_pass_it_for_a_while(self) -> None:
        there = [Place(id=1, name="c1", kind=ClusterKind.LOCAL, rooms={"gpu": Room(8, 8, 4)})]
        plan = place(self.lanes(), there, limit=9, bounds=bounds(ground()), now=60.0)
        assert len(plan.assignments) == 4

    def test_then_what_comes_free_is_kept_for_it_and_said_so(self) -> None:
        there = [Place(id=1, name="c1", kind=ClusterKind.LOCAL, rooms={"gpu": Room(8, 8, 4)})]
        plan = place(self.lanes(), there, limit=9, bounds=bounds(ground()), now=PATIENCE_S + 1)
        assert plan.assignments == []
        assert [r.why for r in plan.holds[self.big]] == [Why.CAPACITY]
        assert [r.why for r in plan.holds[self.small]] == [Why.KEPT]

    def test_other_clusters_go_on_meanwhile(self) -> None:
        there = [
            Place(id=1, name="c1", kind=ClusterKind.LOCAL, rooms={"gpu": Room(8, 8, 4)}),
            Place(id=2, name="c2", kind=ClusterKind.LOCAL, rooms={"gpu": Room(2, 2, 0)}),
        ]
        plan = place(self.lanes(), there, limit=9, bounds=bounds(ground()), now=PATIENCE_S + 1)
        assert {a.cluster for a in plan.assignments} == {2}

    def test_a_quota_is_kept_in_the_same_way(self) -> None:
        rg = ground(accounts={"gpu": Account(8, 4)})
        late = PATIENCE_S + 1
        plan = place(self.lanes(), [cluster(gpu=99)], limit=9, bounds=bounds(rg), now=late)
        assert plan.assignments == []

    def test_what_can_never_start_keeps_nothing(self) -> None:
        lanes = self.lanes() | {self.big: Line(asks(gpu=9), [0.0])}
        plan = place(lanes, [cluster(gpu=8)], limit=9, bounds=bounds(ground()), now=1e6)
        assert len(plan.assignments) == 8
