"""Nodes as they can serve us: what others take is not offered, what is cordoned is not ready."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping
from typing import Final

import msgspec

from verderer.core.model.resources import CPU, MEMORY, Resources, format_quantity
from verderer.drivers.contract import NodeFacts
from verderer.drivers.kubernetes.seen import devices, quantities
from verderer.drivers.kubernetes.seen.sights import AnyPod, Condition, Node, condition, holds

ACCELERATOR: Final = "verderer.dev/accelerator"
MISSING_DEVICES: Final = "verderer.dev/missing-devices"
TAKEN: Final = "verderer.dev/taken-by-others"
CORDONED: Final = "verderer.dev/cordoned"

_KEPT: Final = frozenset(
    {
        "kubernetes.io/hostname",
        "kubernetes.io/arch",
        "kubernetes.io/os",
        "node.kubernetes.io/instance-type",
        "topology.kubernetes.io/region",
        "topology.kubernetes.io/zone",
        "accelerator",
        "accelerator/huawei-npu",
        "host-arch/huawei-npu",
        "servertype",
    }
)
_KEPT_PREFIXES: Final = (
    "nvidia.com/gpu.",
    "nvidia.com/mig.",
    "nvidia.com/cuda.",
    "amd.com/gpu.",
    "cloud.google.com/gke-",
    "habana.ai/",
    "huawei.com/",
    "aws.amazon.com/neuron",
    "verderer.dev/",
    "cube.studio/",
)
_NAMES: Final = (
    devices.PRODUCT,
    "cloud.google.com/gke-accelerator",
    "cloud.google.com/gke-tpu-accelerator",
    "amd.com/gpu.product-name",
    "accelerator/huawei-npu",
    "accelerator",
)
_UNUSABLE: Final = frozenset({"NoSchedule", "NoExecute"})
_UNUSABLE_TAINTS: Final = (
    "node.kubernetes.io/",
    "ToBeDeletedByClusterAutoscaler",
    "verderer.dev/",
)


def usage(pod: AnyPod) -> Resources:
    """What a pod takes from its node: as the scheduler counts it.

    Containers and sidecars run together; an init container runs before, beside those sidecars
    that came earlier.
    """
    running = quantities.asked(c.resources.requests or {} for c in pod.spec.containers or ())
    beside: dict[str, int] = {}
    peak: dict[str, int] = {}
    for one in pod.spec.init_containers or ():
        needs = quantities.asked([one.resources.requests or {}])
        if one.restart_policy == "Always":
            beside = _sum(beside, needs)
            peak = quantities.most(peak, beside)
        else:
            peak = quantities.most(peak, _sum(beside, needs))
    total = quantities.most(_sum(running, beside), peak)
    return Resources.of(_sum(total, quantities.asked([pod.spec.overhead or {}])))


def trimmed(node: Node) -> Node:
    """What is kept of a node: labels that matter and conditions that decide."""
    labels = {
        sys.intern(n): sys.intern(t) for n, t in (node.metadata.labels or {}).items() if _matters(n)
    }
    ready = condition(node.status.conditions, "Ready")
    amounts = {sys.intern(n): sys.intern(t) for n, t in (node.status.allocatable or {}).items()}
    capacity = {sys.intern(n): sys.intern(t) for n, t in (node.status.capacity or {}).items()}
    status = msgspec.structs.replace(
        node.status,
        allocatable=amounts,
        capacity=amounts if capacity == amounts else capacity,
        conditions=[Condition(type=ready.type, status=ready.status)] if ready else None,
    )
    metadata = msgspec.structs.replace(node.metadata, labels=_shared(labels))
    return msgspec.structs.replace(node, metadata=metadata, status=status)


def facts(node: Node, taken: Mapping[Resources, int]) -> NodeFacts:
    """The node as we may use it. `taken`: how many pods of others hold how much there."""
    labels = node.metadata.labels or {}
    whole = devices.offered(node.status.allocatable or {}, labels)
    used: dict[str, int] = {}
    for one, pods in taken.items():
        for name, value in devices.renamed(one, labels).items():
            used[name] = used.get(name, 0) + value * pods
    rest = {name: max(0, value - used.get(name, 0)) for name, value in whole.items()}
    return NodeFacts(
        name=node.metadata.name,
        ready=is_ready(node),
        allocatable=Resources.of(rest),
        labels=_labels(node, labels, used),
    )


def is_ready(node: Node) -> bool:
    """Whether new work may go there: it says that it is ready, and nobody keeps work away."""
    if node.spec.unschedulable or node.metadata.deletion_timestamp:
        return False
    for taint in node.spec.taints or ():
        if taint.effect in _UNUSABLE and taint.key.startswith(_UNUSABLE_TAINTS):
            return False
    return holds(node.status.conditions, "Ready") is not None


def _labels(node: Node, labels: Mapping[str, str], used: Mapping[str, int]) -> dict[str, str]:
    kept = {name: text for name, text in labels.items() if _matters(name)}
    product = next((labels[name] for name in _NAMES if labels.get(name)), "")
    if product:
        kept[ACCELERATOR] = product
    if promised := devices.lacks_devices(node):
        kept[MISSING_DEVICES] = promised
    if node.spec.unschedulable:
        kept[CORDONED] = "true"
    counted = {n: v for n, v in used.items() if v and (n in (CPU, MEMORY) or devices.is_device(n))}
    if counted:
        kept[TAKEN] = ", ".join(
            f"{name}={format_quantity(value, resource=name)}"
            for name, value in sorted(counted.items())
        )
    return kept


def _shared(texts: Mapping[str, str] | None) -> dict[str, str]:
    """Equal texts of a thousand nodes are kept once."""
    return {sys.intern(name): sys.intern(text) for name, text in (texts or {}).items()}


def _matters(label: str) -> bool:
    return label in _KEPT or label.startswith(_KEPT_PREFIXES)


def inventory(nodes: Iterable[Node]) -> dict[str, str]:
    """The data of the ConfigMap `cluster-info`: what all ready nodes have together."""
    total: dict[str, int] = {}
    ready = count = 0
    for node in nodes:
        count += 1
        if not is_ready(node):
            continue
        ready += 1
        offered = devices.offered(node.status.allocatable or {}, node.metadata.labels or {})
        for name, value in offered.items():
            total[name] = total.get(name, 0) + value
    data = {
        # A slash cannot stand in a key, so a device is named as in the guide, under `resources`.
        "cpu": str(total.get(CPU, 0) // 1000),
        "memory": format_quantity(total.get(MEMORY, 0), resource=MEMORY),
        "nodes": str(count),
        "nodes-ready": str(ready),
        "resources": "\n".join(
            f"{name}: {format_quantity(value, resource=name)}"
            for name, value in sorted(total.items())
            if devices.is_device(name) or name in (CPU, MEMORY)
        ),
    }
    for name, value in total.items():
        if devices.is_device(name):
            data[name.replace("/", ".")] = format_quantity(value, resource=name)
    return data


def _sum(one: Mapping[str, int], other: Mapping[str, int]) -> dict[str, int]:
    return {name: one.get(name, 0) + other.get(name, 0) for name in {*one, *other}}
