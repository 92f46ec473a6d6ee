"""Reasons: complete, stable, and with their numbers."""

from __future__ import annotations

import pytest

from verderer.core.explain import Reason, Why, nearest_first, why_not
from verderer.core.model.cluster import ClusterKind, Place, Room
from verderer.core.model.resources import Resources
from verderer.core.model.waiting import PENDING_SENTENCES, Pending, Waiting


@pytest.mark.parametrize("why", list(Why))
def test_every_code_has_a_sentence_and_survives_a_row(why: Why) -> None:
    reason = Reason(
        why=why,
        cluster="c",
        resource="nvidia.com/gpu",
        asked=8000,
        free=3000,
        total=16000,
        foreign=1000,
        seconds=4,
        others=("prepare",),
    )
    assert reason.message
    assert Reason.from_dict(reason.as_dict()) == reason


def test_the_numbers_stand_in_the_sentence_and_the_change_is_the_difference() -> None:
    reason = Reason(
        why=Why.CAPACITY, cluster="c", resource="nvidia.com/gpu", asked=8000, free=3000, total=16000
    )
    assert reason.message == "asks 8 nvidia.com/gpu; 3 of 16 nvidia.com/gpu is free"
    assert reason.change == "5 more nvidia.com/gpu free would start it"


GPU = "nvidia.com/gpu"


def _shared(room: Room) -> Place:
    return Place(id=1, name="c", kind=ClusterKind.KUBERNETES, rooms={GPU: room})


@pytest.mark.parametrize(
    ("room", "asked", "nodes", "why", "free", "total"),
    [
        pytest.param(
            Room(2000, 2000, 0, others=14_000, biggest=8000),
            8000,
            1,
            Why.OTHERS,
            2000,
            8000,
            id="a node is large enough, and others hold most of it",
        ),
        pytest.param(
            Room(10_000, 4000, 0, others=6000, biggest=8000),
            4000,
            4,
            Why.OTHERS,
            10_000,
            16_000,
            id="the cluster is large enough, and others hold a part of it",
        ),
        pytest.param(
            Room(2000, 2000, 0, others=6000, biggest=4000),
            8000,
            1,
            Why.NODE_TOO_SMALL,
            2000,
            4000,
            id="no node is large enough, whoever uses it",
        ),
        pytest.param(
            Room(10_000, 8000, 6000, others=6000, biggest=8000),
            8000,
            1,
            Why.CAPACITY,
            4000,
            16_000,
            id="the platform's own steps hold it",
        ),
        pytest.param(
            Room(0, 0, 0, others=8000, biggest=8000),
            1000,
            1,
            Why.OTHERS,
            0,
            8000,
            id="others hold all there is: that is not none",
        ),
    ],
)
def test_what_others_hold_is_told_apart_from_what_is_not_there(
    room: Room, asked: int, nodes: int, why: Why, free: int, total: int
) -> None:
    reason = why_not(Resources.of({GPU: asked}), nodes, _shared(room), {GPU: room.free})
    assert (reason.why, reason.free, reason.total) == (why, free, total)
    assert reason.change


def test_the_nearest_cluster_comes_first() -> None:
    far = Reason(why=Why.CAPACITY, cluster="far", resource=GPU, asked=8000, free=1000)
    near = Reason(why=Why.CAPACITY, cluster="near", resource=GPU, asked=8000, free=7000)
    never = Reason(why=Why.NO_SUCH_RESOURCE, cluster="never", resource=GPU, asked=8000)
    room = Reason(why=Why.PLACING, cluster="room")
    found = nearest_first([never, far, room, near])
    assert [one.cluster for one in found] == ["room", "near", "far", "never"]


def test_codes_of_clusters_and_of_ours_are_told_apart() -> None:
    assert not {code.value for code in Pending} & {why.value for why in Why}
    assert set(PENDING_SENTENCES) == set(Pending)
    assert all(Waiting(code=code).sentence for code in Pending)
