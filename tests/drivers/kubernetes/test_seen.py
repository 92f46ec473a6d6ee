"""Amounts, devices, nodes, times."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.drivers.kubernetes.make import any_pod, node
from verderer.core.model.resources import Resources
from verderer.drivers.kubernetes.seen import clocks, devices, quantities
from verderer.drivers.kubernetes.seen.nodes import facts, inventory, is_ready, usage
from verderer.drivers.kubernetes.seen.occupancy import Occupancy, Taken

GIB = 1 << 30


@pytest.mark.parametrize(
    ("text", "resource", "amount"),
    [
        ("64", "cpu", 64_000),
        ("3920m", "cpu", 3_920),
        ("250u", "cpu", 0),
        ("16393792Ki", "memory", 16_393_792 * 1024),
        ("128974848", "memory", 128_974_848),
        ("129e6", "memory", 129_000_000),
        ("0.5Gi", "memory", GIB // 2),
        ("100m", "memory", 0),
        ("8", "nvidia.com/gpu", 8_000),
        ("nonsense", "cpu", 0),
        ("-1", "cpu", 0),
        ("", "memory", 0),
        ("NaN", "memory", 0),
        ("1e99", "memory", 2**53),
    ],
)
def test_what_a_cluster_says_is_read_generously(text: str, resource: str, amount: int) -> None:
    assert quantities.amount(text, resource=resource) == amount


@given(st.text(max_size=20), st.sampled_from(["cpu", "memory", "nvidia.com/gpu"]))
def test_any_amount_can_be_read(text: str, resource: str) -> None:
    assert 0 <= quantities.amount(text, resource=resource) <= 2**53


def test_requests_are_rounded_against_whoever_asks() -> None:
    assert quantities.asked([{"cpu": "100u"}]) == {"cpu": 1}


@pytest.mark.parametrize(
    ("text", "unix_ms"),
    [
        ("1970-01-01T00:00:00Z", None),
        (None, None),
        ("soon", None),
        ("2026-12-01T10:00:00Z", 1_796_119_200_000),
        ("2026-12-01T10:00:00.123456789Z", 1_796_119_200_123),
        ("2026-12-01T12:00:00.5+02:00", 1_796_119_200_500),
    ],
)
def test_times(text: str | None, unix_ms: int | None) -> None:
    assert clocks.unix_ms(text) == unix_ms


@given(st.integers(0, 4_000_000_000_000))
def test_times_are_written_as_they_are_read(unix_ms: int) -> None:
    assert clocks.unix_ms(clocks.rfc3339(unix_ms)) == (unix_ms or None)


SLICED = {
    devices.PRODUCT: "NVIDIA-A100-SXM4-40GB-MIG-1g.5gb",
    devices.STRATEGY: "single",
}


@pytest.mark.parametrize(
    ("labels", "profile"),
    [
        pytest.param(SLICED, "1g.5gb", id="single strategy"),
        pytest.param({devices.PRODUCT: "NVIDIA-H100-80GB-HBM3"}, "", id="whole"),
        pytest.param({**SLICED, devices.STRATEGY: "mixed"}, "", id="mixed counts by itself"),
        pytest.param(
            {devices.PRODUCT: "NVIDIA-H100-MIG-1g.10gb+me"}, "1g.10gb.me", id="media engine"
        ),
        pytest.param({}, "", id="no labels"),
    ],
)
def test_the_profile_of_a_node(labels: dict[str, str], profile: str) -> None:
    assert devices.profile_of(labels) == profile


def test_slices_are_offered_by_their_name_whatever_the_strategy() -> None:
    single = node("a", {"nvidia.com/gpu": "7"}, labels=SLICED)
    mixed = node("b", {"nvidia.com/gpu": "1", "nvidia.com/mig-1g.5gb": "14"})
    legacy = node("c", {"nvidia.com/mig-1g-5gb": "3"})
    assert facts(single, {}).allocatable == Resources.of({"nvidia.com/mig-1g.5gb": 7_000})
    assert facts(mixed, {}).allocatable.get("nvidia.com/mig-1g.5gb") == 14_000
    assert facts(legacy, {}).allocatable == Resources.of({"nvidia.com/mig-1g.5gb": 3_000})


def test_a_slice_is_asked_for_in_the_way_of_the_cluster() -> None:
    wish = Resources.of({"nvidia.com/mig-1g.5gb": 1_000, "cpu": 500})
    single = node("a", {"nvidia.com/gpu": "7"}, labels=SLICED)
    mixed = node("b", {"nvidia.com/mig-1g.5gb": "14"})
    legacy = node("c", {"nvidia.com/mig-1g-5gb": "3"})
    asked = devices.place(wish, Resources(), [single])
    assert asked.requests == Resources.of({"nvidia.com/gpu": 1_000, "cpu": 500})
    assert asked.expressions == (
        {"key": devices.PRODUCT, "operator": "In", "values": [SLICED[devices.PRODUCT]]},
    )
    assert devices.place(wish, Resources(), [mixed]).requests == wish
    assert devices.place(wish, Resources(), [legacy]).requests.get("nvidia.com/mig-1g-5gb") == 1_000
    assert devices.place(wish, Resources(), []).requests == wish


def test_a_whole_gpu_is_never_answered_with_a_slice() -> None:
    wish = Resources.of({"nvidia.com/gpu": 1_000})
    placed = devices.place(wish, Resources(), [node("a", labels=SLICED), node("b")])
    assert placed.expressions[0]["operator"] == "NotIn"
    assert placed.limits == wish
    assert placed.tolerated == ("nvidia.com/gpu",)
    assert devices.place(wish, Resources(), [node("b")]).expressions == ()


@pytest.mark.parametrize(
    ("fields", "ready"),
    [
        pytest.param({}, True, id="ready"),
        pytest.param({"ready": "False"}, False, id="not ready"),
        pytest.param({"ready": "Unknown"}, False, id="silent"),
        pytest.param({"unschedulable": True}, False, id="cordoned"),
        pytest.param(
            {"taints": [{"key": "node.kubernetes.io/unreachable", "effect": "NoExecute"}]},
            False,
            id="unreachable",
        ),
        pytest.param(
            {"taints": [{"key": "nvidia.com/gpu", "effect": "NoSchedule"}]},
            True,
            id="reserved for those who tolerate it, as we do",
        ),
        pytest.param(
            {"taints": [{"key": "ToBeDeletedByClusterAutoscaler", "effect": "NoSchedule"}]},
            False,
            id="about to be removed",
        ),
    ],
)
def test_which_nodes_may_take_work(fields: dict[str, Any], ready: bool) -> None:
    assert is_ready(node(**fields)) is ready


def test_what_others_take_is_not_offered() -> None:
    taken = {Resources.of({"cpu": 2_000, "nvidia.com/gpu": 1_000}): 3}
    seen = facts(node(amounts={"cpu": "64", "memory": "1Gi", "nvidia.com/gpu": "8"}), taken)
    assert seen.allocatable == Resources.of({"cpu": 58_000, "memory": GIB, "nvidia.com/gpu": 5_000})
    assert seen.labels["verderer.dev/taken-by-others"] == "cpu=6, nvidia.com/gpu=3"


def test_more_may_be_taken_than_there_is() -> None:
    taken = {Resources.of({"cpu": 99_000}): 1}
    assert facts(node(amounts={"cpu": "64"}), taken).allocatable == Resources()


def test_a_label_that_promises_what_the_node_does_not_count_is_flagged() -> None:
    broken = node(labels={"nvidia.com/gpu.present": "true"})
    assert facts(broken, {}).labels["verderer.dev/missing-devices"] == "nvidia.com/gpu.present"
    whole = node(amounts={"nvidia.com/gpu": "8"}, labels={"nvidia.com/gpu.present": "true"})
    assert "verderer.dev/missing-devices" not in facts(whole, {}).labels


def test_labels_that_matter_are_kept_and_others_are_not() -> None:
    labels = {
        devices.PRODUCT: "NVIDIA-H100",
        "topology.kubernetes.io/zone": "a",
        "cloud.google.com/gke-tpu-topology": "2x4",
        "team-secret": "x",
    }
    kept = facts(node(labels=labels), {}).labels
    assert kept["verderer.dev/accelerator"] == "NVIDIA-H100"
    assert "team-secret" not in kept
    assert kept["cloud.google.com/gke-tpu-topology"] == "2x4"


def test_a_pod_is_counted_as_the_scheduler_counts_it() -> None:
    pod = any_pod(
        {"cpu": "1", "memory": "1Gi"},
        {"cpu": "500m"},
        before=[
            {"resources": {"requests": {"cpu": "100m"}}, "restartPolicy": "Always"},
            {"resources": {"requests": {"cpu": "4"}}},
        ],
        overhead={"cpu": "10m"},
    )
    assert usage(pod) == Resources.of({"cpu": 4_110, "memory": GIB})
    assert usage(any_pod()) == Resources()


def test_pods_come_and_go() -> None:
    here = Occupancy()
    here.node_changed(None, node(amounts={"cpu": "8"}))
    one, two = here.keep(any_pod({"cpu": "1"})), here.keep(any_pod({"cpu": "1"}))
    assert one.amounts is two.amounts
    here.pod_changed(None, one)
    here.pod_changed(None, two)
    assert here.all()[0].allocatable.get("cpu") == 6_000
    here.pod_changed(one, Taken("elsewhere", one.amounts))
    assert here.all()[0].allocatable.get("cpu") == 7_000
    here.pod_changed(two, None)
    assert here.all()[0].allocatable.get("cpu") == 8_000
    here.node_changed(here.nodes["n0"], None)
    assert here.all() == []


def test_the_inventory_names_what_ready_nodes_have() -> None:
    data = inventory(
        [
            node("a", {"cpu": "32", "memory": "1Ti", "nvidia.com/gpu": "4"}),
            node("b", {"nvidia.com/gpu": "7"}, labels=SLICED),
            node("c", {"nvidia.com/gpu": "8"}, ready="False"),
        ]
    )
    assert (data["nodes"], data["nodes-ready"], data["cpu"]) == ("3", "2", "32")
    assert data["nvidia.com.gpu"] == "4"
    assert "nvidia.com/mig-1g.5gb: 7" in data["resources"]
