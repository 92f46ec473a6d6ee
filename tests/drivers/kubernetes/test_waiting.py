from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.drivers.kubernetes.make import job, running, unscheduled, waiting
from verderer.core.model.waiting import Pending
from verderer.drivers.kubernetes.deciding.waiting import (
    at_once,
    explain,
    parse_unschedulable,
    quota_numbers,
)

FULL = (
    "0/12 nodes are available: 1 node(s) had untolerated taint {node.kubernetes.io/unreachable: }, "
    "2 node(s) didn't match Pod's node affinity/selector, 3 Insufficient memory, "
    "8 Insufficient nvidia.com/gpu. preemption: 0/12 nodes are available: "
    "4 No preemption victims found for incoming pod, 8 Preemption is not helpful for scheduling."
)


def test_a_message_of_the_scheduler_is_taken_apart() -> None:
    parsed = parse_unschedulable(FULL)
    assert parsed is not None
    assert (parsed.nodes, parsed.available, parsed.unmatched) == (12, 0, 3)
    assert parsed.short == {"memory": 3, "nvidia.com/gpu": 8}
    assert parsed.reasons["node(s) had untolerated taint {node.kubernetes.io/unreachable: }"] == 1


@pytest.mark.parametrize(
    ("message", "short", "unmatched"),
    [
        pytest.param(
            "0/1 nodes are available: 1 Insufficient nvidia.com/gpu. preemption: 0/1 nodes are",
            {"nvidia.com/gpu": 1},
            0,
            id="one reason",
        ),
        pytest.param("0/3 nodes are available: 3 Too many pods.", {"pods": 3}, 0, id="places"),
        pytest.param("0/0 nodes are available", {}, 0, id="no nodes at all"),
        pytest.param("0/2 nodes are available: .", {}, 0, id="nothing said"),
        pytest.param(
            "0/2 nodes are available: 2 node(s) were unschedulable.", {}, 2, id="all cordoned"
        ),
        pytest.param(
            "0/5 nodes are available: 5 Insufficient cpu, 5 Insufficient memory.",
            {"cpu": 5, "memory": 5},
            0,
            id="the numbers need not add up",
        ),
        pytest.param(
            "0/2 nodes are available: 2 node(s) had untolerated taint {a: b, 3 Insufficient cpu}.",
            {},
            2,
            id="a taint that looks like a reason",
        ),
    ],
)
def test_reasons_are_counted(message: str, short: dict[str, int], unmatched: int) -> None:
    parsed = parse_unschedulable(message)
    assert parsed is not None
    assert (dict(parsed.short), parsed.unmatched) == (short, unmatched)


@given(st.text())
def test_any_text_can_be_read(text: str) -> None:
    parse_unschedulable(text)
    parse_unschedulable("0/3 nodes are available: " + text)
    quota_numbers(text)
    explain([unscheduled(text)], nodes=1)
    explain([waiting("ImagePullBackOff", text)], nodes=1, refusal=text)


@given(
    st.dictionaries(
        st.from_regex(r"[a-z]{1,8}(\.[a-z]{1,3}/[a-z]{1,8})?", fullmatch=True),
        st.integers(1, 10_000),
        max_size=6,
    )
)
def test_what_the_scheduler_writes_is_read_back(short: dict[str, int]) -> None:
    reasons = sorted(f"{count} Insufficient {name}" for name, count in short.items())
    message = f"0/99 nodes are available: {', '.join(reasons)}. preemption: 0/99 nodes are"
    parsed = parse_unschedulable(message)
    assert parsed is not None
    assert parsed.short == short


@pytest.mark.parametrize(
    ("pods", "fields", "code", "words"),
    [
        pytest.param([], {}, Pending.UNKNOWN, "not made its pods", id="nothing yet"),
        pytest.param([unscheduled(FULL)], {}, Pending.RESOURCES, "0/12", id="no GPU is free"),
        pytest.param(
            [unscheduled("0/2 nodes are available: 2 node(s) didn't match Pod's node selector.")],
            {},
            Pending.NODES,
            "selector",
            id="no such node",
        ),
        pytest.param(
            [unscheduled('persistentvolumeclaim "d" not found')],
            {},
            Pending.VOLUME,
            "not found",
            id="no volume",
        ),
        pytest.param(
            [unscheduled("", reason="SchedulingGated")], {}, Pending.QUEUE, "gated", id="gated"
        ),
        pytest.param(
            [waiting("ImagePullBackOff", "not found")],
            {},
            Pending.IMAGE,
            "ImagePullBackOff: not found",
            id="no image",
        ),
        pytest.param(
            [waiting("CreateContainerConfigError", 'secret "x" not found')],
            {},
            Pending.CONFIGURATION,
            'secret "x" not found',
            id="no secret",
        ),
        pytest.param(
            [waiting("ContainerCreating")], {}, Pending.CREATING, "being made", id="just a moment"
        ),
        pytest.param(
            [running(0), unscheduled(FULL, rank=1)],
            {"nodes": 2},
            Pending.GANG,
            "1 of 2 replicas have a place",
            id="half a gang",
        ),
        pytest.param(
            [],
            {
                "refusal": 'pods "a" is forbidden: exceeded quota: q, requested: pods=1, '
                "used: pods=5, limited: pods=5"
            },
            Pending.QUOTA,
            "exceeded quota",
            id="the quota is full",
        ),
        pytest.param(
            [],
            {"refusal": 'pods "a" is forbidden: violates PodSecurity "restricted:latest"'},
            Pending.POLICY,
            "PodSecurity",
            id="a policy refuses",
        ),
        pytest.param(
            [],
            {"job": job(suspend=True, queue="gold")},
            Pending.QUEUE,
            "queue gold",
            id="it stands in Kueue's queue",
        ),
    ],
)
def test_why_it_waits(pods: list[Any], fields: dict[str, Any], code: Pending, words: str) -> None:
    waits = explain(pods, **{"nodes": 1, **fields})
    assert waits.code is code
    assert words in waits.message


def test_numbers_come_with_the_reason() -> None:
    numbers = explain([unscheduled(FULL)], nodes=1).numbers
    assert numbers["nodes"] == 12
    assert numbers["nodes_short_of nvidia.com/gpu"] == 8
    assert quota_numbers(
        "exceeded quota: q, requested: pods=1,requests.cpu=2, used: pods=5,requests.cpu=1500m, "
        "limited: pods=5,requests.cpu=3"
    ) == {
        "requested pods": 1,
        "requested requests.cpu": 2,
        "used pods": 5,
        "limited pods": 5,
        "limited requests.cpu": 3,
    }


def test_what_can_never_be_is_told_from_what_may_come() -> None:
    assert at_once(explain([waiting("InvalidImageName", "x")], nodes=1))
    assert not at_once(explain([waiting("ErrImagePull", "x")], nodes=1))
    assert not explain([unscheduled(FULL)], nodes=1).hopeless
