"""What the contract does not ask: ownership, walls, reasons, and what a cluster takes away."""

from __future__ import annotations

import asyncio
import time
import urllib.error
from collections.abc import Callable
from typing import Any

import pytest

from testbeds.kubernetes.cluster import Cluster
from tests.drivers.contract import (
    DEADLINE_S,
    Work,
    begin,
    joined,
    read_all,
    seen,
    until,
    until_over,
    until_running,
)
from tests.drivers.kubernetes.bed import exists
from tests.drivers.kubernetes.rig import OURS, KubernetesRig, jobs
from verderer.core.errors import Conflict, Refusal
from verderer.core.model.attempt import AttemptState, EndCause
from verderer.core.model.resources import Resources
from verderer.core.model.waiting import Pending
from verderer.drivers.contract import Driver, Observed

pytestmark = pytest.mark.xdist_group("kubernetes")

Make = Callable[..., KubernetesRig]


def _words(observed: Observed) -> str:
    return observed.pending.message if observed.pending is not None else ""


async def eventually(reached: Callable[[], bool], what: str) -> None:
    deadline = time.monotonic() + DEADLINE_S
    while not reached():
        assert time.monotonic() < deadline, what
        await asyncio.sleep(0.05)


async def test_it_is_a_driver(kube: KubernetesRig) -> None:
    driver: Driver = kube.driver
    assert driver.kind == "kubernetes"


async def test_people_can_see_what_the_cluster_owes(kube: KubernetesRig) -> None:
    key = await begin(kube.driver, kube.order(Work.HANG))
    await until_running(kube.driver, key)
    await eventually(
        lambda: kube.intention(key).get("status", {}).get("phase") == "Running",
        "the phase is written",
    )
    ours = kube.intention(key)
    assert ours["spec"]["runName"] == "night"
    assert ours["status"]["node"].startswith("node-")
    assert ours["status"]["jobUid"] == kube.job(key)["metadata"]["uid"]
    await kube.driver.stop(key, grace_s=0)
    await until_over(kube.driver, key)
    status = kube.intention(key)["status"]
    assert (status["phase"], status["end"]["cause"]) == ("Cancelled", "cancelled")


async def test_a_project_gets_a_walled_namespace(make_rig: Make, cluster: Cluster) -> None:
    kube = make_rig(
        quota={"pods": "20", "requests.nvidia.com/gpu": "4"},
        default_requests={"cpu": "100m"},
        default_limits={"memory": "1Gi"},
    )
    order = kube.order(Work.SUCCEED, project="walled")
    await begin(kube.driver, order)
    await until_over(kube.driver, order.key)
    space = cluster.call("GET", "/api/v1/namespaces/verderer-walled")
    assert space["metadata"]["labels"]["pod-security.kubernetes.io/enforce"] == "baseline"
    base = "/api/v1/namespaces/verderer-walled"
    assert cluster.call("GET", f"{base}/resourcequotas/verderer")["spec"]["hard"]["pods"] == "20"
    account = cluster.call("GET", f"{base}/serviceaccounts/verderer-step")
    assert account["automountServiceAccountToken"] is False
    [limits] = cluster.call("GET", f"{base}/limitranges/verderer")["spec"]["limits"]
    assert limits["default"]["memory"] == "1Gi"


async def test_nothing_is_left_of_what_is_forgotten(kube: KubernetesRig, cluster: Cluster) -> None:
    order = kube.order(Work.SUCCEED, nodes=2, env={"A_TOKEN": "s"})
    await begin(kube.driver, order)
    core = "/api/v1/namespaces/verderer-vision"
    paths = [
        f"{OURS}/{order.key}",
        f"{jobs()}/{order.key}",
        f"{core}/services/{order.key}",
        f"{core}/secrets/{order.key}",
    ]
    assert all(exists(cluster, path) for path in paths)
    await until_over(kube.driver, order.key)
    await kube.driver.forget(order.key)
    assert [path for path in paths if exists(cluster, path)] == []
    await eventually(lambda: kube.pods(order.key) == [], "its pods are gone")


@pytest.mark.parametrize(
    ("document", "path"),
    [
        pytest.param(
            {
                "apiVersion": "batch/v1",
                "kind": "Job",
                "spec": {
                    "suspend": True,
                    "template": {
                        "spec": {
                            "restartPolicy": "Never",
                            "containers": [{"name": "x", "image": "x"}],
                        }
                    },
                },
            },
            jobs(),
            id="a Job",
        ),
        pytest.param(
            {
                "apiVersion": "execution.cube.studio/v1",
                "kind": "CubePipeline",
                "spec": {"attempt": "v0000000000000001-1-1"},
            },
            OURS,
            id="a CubePipeline",
        ),
        pytest.param(
            {"apiVersion": "v1", "kind": "Secret"},
            "/api/v1/namespaces/verderer-vision/secrets",
            id="a Secret",
        ),
        pytest.param(
            {
                "apiVersion": "v1",
                "kind": "Service",
                "spec": {"clusterIP": "None", "ports": [{"port": 80}]},
            },
            "/api/v1/namespaces/verderer-vision/services",
            id="a Service",
        ),
    ],
)
async def test_what_somebody_else_made_is_left_alone(
    kube: KubernetesRig, cluster: Cluster, document: dict[str, Any], path: str
) -> None:
    first = kube.order(Work.SUCCEED)
    await begin(kube.driver, first)  # makes the namespace
    order = kube.order(Work.SUCCEED, nodes=2, env={"A_TOKEN": "s"})
    document = {**document, "metadata": {"name": str(order.key)}}
    before = cluster.call("POST", path, document)["metadata"]
    with pytest.raises(Conflict, match=f"{document['kind']} named {order.key} exists"):
        await begin(kube.driver, order)
    observed = await seen(kube.driver, order.key)
    if observed is not None:
        assert observed.end is not None
        assert observed.end.cause is EndCause.START
        assert "not ours" in observed.end.message
    await kube.driver.forget(order.key)
    after = cluster.call("GET", f"{path}/{order.key}")["metadata"]
    assert (after["uid"], after.get("labels")) == (before["uid"], before.get("labels"))
    cluster.call("DELETE", f"{path}/{order.key}")


async def test_a_namespace_of_somebody_else_is_not_used(
    kube: KubernetesRig, cluster: Cluster
) -> None:
    name = {"metadata": {"name": "verderer-taken"}}
    cluster.call("POST", "/api/v1/namespaces", {"apiVersion": "v1", "kind": "Namespace", **name})
    with pytest.raises(Conflict, match="namespace verderer-taken exists and is not ours"):
        await begin(kube.driver, kube.order(Work.SUCCEED, project="taken"))
    assert await kube.driver.observe() == []


async def test_an_agent_that_dies_between_its_object_and_the_job_is_no_loss(
    kube: KubernetesRig, monkeypatch: pytest.MonkeyPatch
) -> None:
    order = kube.order(Work.SUCCEED)
    await begin(kube.driver, kube.order(Work.SUCCEED))

    async def die(*_: object) -> None:
        raise asyncio.CancelledError

    monkeypatch.setattr(kube.driver._launching, "_make", die)
    with pytest.raises(asyncio.CancelledError):
        await begin(kube.driver, order)
    await kube.driver.close()
    assert "status" not in kube.intention(order.key)
    kube.driver = kube._make()
    observed = await until_over(kube.driver, order.key)
    assert observed.state is AttemptState.SUCCEEDED
    assert len(kube.pods(order.key)) == 1


async def test_what_may_have_run_is_never_started_again(
    kube: KubernetesRig, cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    order = kube.order(Work.HANG)
    await begin(kube.driver, kube.order(Work.SUCCEED))
    # The agent dies before it can note that the Job exists; then somebody deletes the Job.
    monkeypatch.setattr(kube.driver._keeper, "touched", lambda tracked: None)
    await begin(kube.driver, order)
    await eventually(lambda: len(kube.pods(order.key)) == 1, "its pod is made")
    await kube.driver.close()
    cluster.call("DELETE", f"{jobs()}/{order.key}", {"propagationPolicy": "Background"})
    await eventually(lambda: kube.pods(order.key) == [], "its pod is gone")
    kube.driver = kube._make()
    observed = await until_over(kube.driver, order.key)
    assert observed.state is AttemptState.LOST
    assert not exists(cluster, f"{jobs()}/{order.key}")


async def test_a_job_deleted_by_hand_is_lost(kube: KubernetesRig, cluster: Cluster) -> None:
    key = await begin(kube.driver, kube.order(Work.HANG))
    await until_running(kube.driver, key)
    cluster.call("DELETE", f"{jobs()}/{key}", {"propagationPolicy": "Background"})
    observed = await until_over(kube.driver, key)
    assert observed.state is AttemptState.LOST


async def test_a_pod_deleted_by_hand_is_lost(kube: KubernetesRig, cluster: Cluster) -> None:
    key = await begin(kube.driver, kube.order(Work.HANG))
    await until_running(kube.driver, key)
    [pod] = kube.pods(key)
    cluster.call("DELETE", f"/api/v1/namespaces/verderer-vision/pods/{pod['metadata']['name']}")
    end = (await until_over(kube.driver, key)).end
    assert end is not None
    assert (end.cause, end.message) == (EndCause.LOST, "its pod was deleted by somebody else")


async def test_an_evicted_pod_is_lost_and_says_so(kube: KubernetesRig, cluster: Cluster) -> None:
    key = await begin(kube.driver, kube.order(Work.HANG))
    await until_running(kube.driver, key)
    [pod] = kube.pods(key)
    name = pod["metadata"]["name"]
    eviction = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": name}}
    cluster.call("POST", f"/api/v1/namespaces/verderer-vision/pods/{name}/eviction", eviction)
    end = (await until_over(kube.driver, key)).end
    assert end is not None
    assert end.cause is EndCause.LOST
    assert "evicted, as when a node is drained" in end.message


async def test_a_node_that_throws_everybody_out_is_told_from_the_steps_fault(
    kube: KubernetesRig, cluster: Cluster
) -> None:
    key = await begin(kube.driver, kube.order(Work.HANG))
    observed = await until_running(kube.driver, key)
    path = f"/api/v1/nodes/{observed.node}"
    merge = "application/merge-patch+json"
    taint = {"key": "broken", "value": "yes", "effect": "NoExecute"}
    cluster.call("PATCH", path, {"spec": {"taints": [taint]}}, kind=merge)
    try:
        end = (await until_over(kube.driver, key)).end
    finally:
        cluster.call("PATCH", path, {"spec": {"taints": None}}, kind=merge)
    assert end is not None
    assert end.cause is EndCause.LOST
    assert "its node became unusable" in end.message


async def test_a_silent_node_is_not_ready_and_its_work_not_over(
    kube: KubernetesRig, cluster: Cluster
) -> None:
    cluster.add_node("mute", {"cpu": "1", "memory": "1Gi", "pods": "9", "example.com/x": "1"})
    wish = {"requests": Resources.of({"example.com/x": 1000})}
    key = await begin(kube.driver, kube.order(Work.HANG, **wish))
    assert (await until_running(kube.driver, key)).node == "mute"
    dead = {"metadata": {"annotations": {"verderer.test/dead": "yes"}}}
    cluster.call("PATCH", "/api/v1/nodes/mute", dead, kind="application/merge-patch+json")
    silent = {"status": {"conditions": [{"type": "Ready", "status": "Unknown"}]}}
    strategic = "application/strategic-merge-patch+json"
    cluster.call("PATCH", "/api/v1/nodes/mute/status", silent, kind=strategic)
    deadline = time.monotonic() + DEADLINE_S
    while {n.name: n.ready for n in await kube.driver.nodes()}["mute"]:
        assert time.monotonic() < deadline
        await asyncio.sleep(0.05)
    observed = await seen(kube.driver, key)
    assert observed is not None
    assert observed.state is AttemptState.RUNNING
    await kube.driver.stop(key, grace_s=0)
    await until_over(kube.driver, key)
    cluster.call("DELETE", "/api/v1/nodes/mute")


async def test_replicas_stand_together(kube: KubernetesRig, cluster: Cluster) -> None:
    order = kube.order(Work.HANG, nodes=3)
    await begin(kube.driver, order)
    await until_running(kube.driver, order.key)
    assert len(kube.pods(order.key)) == 3
    service = cluster.call("GET", f"/api/v1/namespaces/verderer-vision/services/{order.key}")
    assert service["spec"]["clusterIP"] == "None"
    names = {pod["spec"]["hostname"] for pod in kube.pods(order.key)}
    assert names == {f"{order.key}-{rank}" for rank in range(3)}
    await kube.driver.stop(order.key, grace_s=0)
    await until_over(kube.driver, order.key)
    assert kube.pods(order.key) == []


@pytest.mark.parametrize(
    ("work", "state"), [(Work.SUCCEED, AttemptState.SUCCEEDED), (Work.EXIT_3, AttemptState.FAILED)]
)
async def test_replicas_end_together(kube: KubernetesRig, work: Work, state: AttemptState) -> None:
    order = kube.order(work, nodes=3)
    await begin(kube.driver, order)
    observed = await until_over(kube.driver, order.key)
    assert observed.state is state
    if observed.state is AttemptState.FAILED:
        assert observed.end is not None
        assert observed.end.exit_code == 3
        assert " of 3: exit code 3" in observed.end.message


async def test_half_a_gang_is_let_go(make_rig: Make) -> None:
    kube = make_rig(gang_wait_s=0.5)
    wish = {"requests": Resources.of({"cpu": 60_000}), "nodes": 3}
    order = kube.order(Work.HANG, **wish)
    await begin(kube.driver, order)
    end = (await until_over(kube.driver, order.key)).end
    assert end is not None
    assert end.cause is EndCause.START
    assert "2 of 3 replicas have a place" in end.message
    assert kube.pods(order.key) == []


async def test_the_schedulers_words_are_passed_on(kube: KubernetesRig) -> None:
    order = kube.order(Work.HANG, requests=Resources.of({"nvidia.com/gpu": 9_000}))
    await begin(kube.driver, order)
    observed = await until(kube.driver, order.key, lambda o: "Insufficient" in _words(o))
    assert observed.state is AttemptState.STARTING
    assert "Insufficient nvidia.com/gpu" in _words(observed)
    assert observed.pending is not None
    assert observed.pending.code is Pending.RESOURCES
    assert observed.pending.numbers["nodes"] >= 2
    await eventually(
        lambda: "Insufficient" in kube.intention(order.key).get("status", {}).get("message", ""),
        "people see it too",
    )


async def test_a_full_quota_makes_it_wait(kube: KubernetesRig, cluster: Cluster) -> None:
    await begin(kube.driver, kube.order(Work.SUCCEED, project="poor"))
    quota = {
        "apiVersion": "v1",
        "kind": "ResourceQuota",
        "metadata": {"name": "full"},
        "spec": {"hard": {"requests.nvidia.com/gpu": "0"}},
    }
    base = "/api/v1/namespaces/verderer-poor/resourcequotas"
    cluster.call("POST", base, quota)
    await eventually(
        lambda: "hard" in cluster.call("GET", f"{base}/full").get("status", {}), "it counts"
    )
    wish = {"requests": Resources.of({"nvidia.com/gpu": 1_000}), "project": "poor"}
    order = kube.order(Work.SUCCEED, **wish)
    await begin(kube.driver, order)
    observed = await until(kube.driver, order.key, lambda o: "exceeded quota" in _words(o))
    assert observed.state is AttemptState.STARTING
    assert observed.pending is not None
    assert observed.pending.code is Pending.QUOTA
    assert observed.pending.numbers["limited requests.nvidia.com/gpu"] == 0
    cluster.call("DELETE", f"{base}/full")
    observed = await until_over(kube.driver, order.key)
    assert observed.state is AttemptState.SUCCEEDED


async def test_a_policy_of_the_cluster_is_named(kube: KubernetesRig, cluster: Cluster) -> None:
    labels = {
        "app.kubernetes.io/managed-by": "verderer",
        "pod-security.kubernetes.io/enforce": "restricted",
    }
    space = {
        "apiVersion": "v1",
        "kind": "Namespace",
        "metadata": {"name": "verderer-strict", "labels": labels},
    }
    cluster.call("POST", "/api/v1/namespaces", space)
    order = kube.order(Work.SUCCEED, project="strict")
    await begin(kube.driver, order)
    end = (await until_over(kube.driver, order.key)).end
    assert end is not None
    assert end.cause is EndCause.START
    assert 'violates PodSecurity "restricted' in end.message


async def test_the_strict_are_served_when_they_are_told_so(make_rig: Make) -> None:
    kube = make_rig(pod_security="restricted")
    order = kube.order(Work.SUCCEED, project="strict-too")
    await begin(kube.driver, order)
    assert (await until_over(kube.driver, order.key)).state is AttemptState.SUCCEEDED


@pytest.mark.parametrize(
    ("word", "terms", "said"),
    [
        pytest.param("no image", {"start_wait_s": 0.5}, "Back-off pulling image", id="bounded"),
        pytest.param("bad name", {}, "couldn't parse image name", id="at once"),
    ],
)
async def test_an_image_that_does_not_come_ends_the_step(
    make_rig: Make, word: str, terms: dict[str, Any], said: str
) -> None:
    kube = make_rig(**terms)
    order = kube.program(command=(word,))
    await begin(kube.driver, order)
    observed = await until_over(kube.driver, order.key)
    assert observed.end is not None
    assert observed.end.cause is EndCause.START
    assert said in observed.end.message
    assert observed.started_ms is None


async def test_what_others_hold_is_not_offered(kube: KubernetesRig, cluster: Cluster) -> None:
    before = {n.name: n.allocatable.get("nvidia.com/gpu") for n in await kube.driver.nodes()}
    assert before["node-0"] == 8_000
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "neighbour"},
        "spec": {
            "nodeName": "node-0",
            "containers": [
                {
                    "name": "x",
                    "image": "x",
                    "resources": {"limits": {"nvidia.com/gpu": "3"}},
                }
            ],
        },
    }
    path = "/api/v1/namespaces/default/pods"
    cluster.call("POST", path, pod)
    try:
        deadline = time.monotonic() + DEADLINE_S
        while (node := (await kube.driver.nodes())[0]).allocatable.get("nvidia.com/gpu") != 5_000:
            assert time.monotonic() < deadline
            await asyncio.sleep(0.05)
        assert node.labels["verderer.dev/taken-by-others"] == "nvidia.com/gpu=3"
    finally:
        cluster.call("DELETE", f"{path}/neighbour", {"gracePeriodSeconds": 0})


async def test_the_inventory_is_kept_true(kube: KubernetesRig, cluster: Cluster) -> None:
    await kube.driver.nodes()
    path = "/api/v1/namespaces/cube-system/configmaps/cluster-info"
    await eventually(
        lambda: (cluster.call("GET", path).get("data") or {}).get("nvidia.com.gpu") == "16",
        "cluster-info counts the GPUs",
    )


async def test_output_outlives_its_pod_as_far_as_it_was_read(
    kube: KubernetesRig, cluster: Cluster
) -> None:
    kube.say(b"first\n")
    key = await begin(kube.driver, kube.order(Work.HANG))
    await until_running(kube.driver, key)
    output = kube.driver.logs(key, replica=0, after=0)
    assert (await anext(output)).data == b"first\n"
    await kube.driver.stop(key, grace_s=0)
    await until_over(kube.driver, key)
    rest = [piece async for piece in output]
    assert all(not piece.data for piece in rest)


async def test_a_queue_without_kueue_changes_nothing(make_rig: Make) -> None:
    kube = make_rig(queue="gold")
    order = kube.order(Work.SUCCEED)
    await begin(kube.driver, order)
    assert (await until_over(kube.driver, order.key)).state is AttemptState.SUCCEEDED


async def test_scripts_and_secrets_reach_the_container(
    kube: KubernetesRig, cluster: Cluster
) -> None:
    order = kube.program(script="#!/bin/sh\necho hi\n", env={"A_TOKEN": "s3cret"})
    await begin(kube.driver, order)
    await until_running(kube.driver, order.key)
    [pod] = kube.pods(order.key)
    assert "s3cret" not in str(pod)
    assert "s3cret" not in str(kube.intention(order.key))
    secret = cluster.call("GET", f"/api/v1/namespaces/verderer-vision/secrets/{order.key}")
    assert secret["immutable"] is True


async def test_the_agent_cannot_leave_its_walls(cluster: Cluster, kube: KubernetesRig) -> None:
    binding = {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "RoleBinding",
        "metadata": {"name": "mine"},
        "roleRef": {
            "apiGroup": "rbac.authorization.k8s.io",
            "kind": "ClusterRole",
            "name": "cube-agent-project",
        },
        "subjects": [
            {"kind": "ServiceAccount", "name": "cube-agent", "namespace": "cube-execution"}
        ],
    }
    path = "/apis/rbac.authorization.k8s.io/v1/namespaces/kube-system/rolebindings"
    with pytest.raises(Refusal, match="namespaces of projects only"):
        await kube.driver._api.create(path, binding, dict)
    space = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "mine"}}
    with pytest.raises(Refusal, match="namespaces of projects only"):
        await kube.driver._api.create("/api/v1/namespaces", space, dict)
    with pytest.raises(urllib.error.HTTPError, match="404"):
        cluster.call("GET", f"{path}/mine")


async def test_many_steps_are_started_quickly(kube: KubernetesRig) -> None:
    await kube.driver.observe()
    await begin(kube.driver, kube.order(Work.SUCCEED))
    orders = [kube.order(Work.HANG) for _ in range(100)]
    began = time.monotonic()
    await asyncio.gather(*(begin(kube.driver, order) for order in orders))
    passed = time.monotonic() - began
    # A second here when nothing else runs; the limit leaves room for a busy machine.
    assert passed < 15, f"{passed:.1f} s"
    assert len(await kube.driver.observe()) == 101


async def test_output_of_a_finished_step_is_read_after_a_restart(kube: KubernetesRig) -> None:
    order = kube.order(Work.TALK)
    await begin(kube.driver, order)
    await until_over(kube.driver, order.key)
    await kube.restart()
    assert joined(await read_all(kube.driver, order.key, after=4)).startswith(b"two\n")
