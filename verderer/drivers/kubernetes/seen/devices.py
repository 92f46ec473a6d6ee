"""GPUs and their like: what a node really offers, and which nodes a request may go to.

Two ways lead to a slice of a GPU. A node cut with the `mixed` strategy counts
`nvidia.com/mig-<profile>`; one cut with `single` counts `nvidia.com/gpu` and says in a label what
that is. Here both are offered as `nvidia.com/mig-<profile>`, so that people ask in one way, and a
whole GPU is never answered with a slice.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from verderer.core.model.resources import NOTHING, Resources
from verderer.drivers.kubernetes.seen import quantities
from verderer.drivers.kubernetes.seen.sights import Node

GPU: Final = "nvidia.com/gpu"
MIG: Final = "nvidia.com/mig-"
PRODUCT: Final = "nvidia.com/gpu.product"
STRATEGY: Final = "nvidia.com/mig.strategy"
_SLICED: Final = re.compile(
    r"-MIG-(?P<profile>[1-9][0-9]*g\.[0-9]+gb(?:[.+-]?[a-z0-9.]+)?)", re.IGNORECASE
)
_LEGACY: Final = re.compile(
    r"nvidia\.com/mig-(?P<profile>[1-9][0-9]*g)-(?P<memory>[0-9]+gb)", re.IGNORECASE
)

GPU_LABELS: Final = (
    "nvidia.com/gpu.present",
    "nvidia.com/gpu.count",
    "cloud.google.com/gke-accelerator",
    "amd.com/gpu.product-name",
    "cloud.google.com/gke-tpu-accelerator",
    "accelerator/huawei-npu",
    "host-arch/huawei-npu",
)
"""A node that carries one of these should count devices."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Placement:
    """What a container asks for, and which nodes may take it."""

    requests: Resources
    limits: Resources
    expressions: tuple[Mapping[str, object], ...] = ()
    """Of a required node affinity, all to be met."""
    tolerated: tuple[str, ...] = ()
    """Taints named after a requested device, as its nodes often carry them."""


def is_device(resource: str) -> bool:
    """Whether it is counted in pieces: anything with a domain, which Kubernetes' own lack."""
    return "/" in resource


def profile_of(labels: Mapping[str, str]) -> str:
    """The MIG profile that every `nvidia.com/gpu` of the node is; empty when they are whole."""
    found = _SLICED.search(labels.get(PRODUCT, ""))
    if found is None or labels.get(STRATEGY, "single") != "single":
        return ""
    return found["profile"].lower().replace("+", ".")


def canonical(resource: str) -> str:
    """The name by which we know a resource: old spellings of MIG profiles become the present."""
    old = _LEGACY.fullmatch(resource)
    return f"{MIG}{old['profile']}.{old['memory']}".lower() if old else resource


def offered(amounts: Mapping[str, str], labels: Mapping[str, str]) -> Resources:
    """What a node gives, with slices under the name of their profile."""
    return renamed(quantities.offered(amounts), labels)


def renamed(amounts: Resources, labels: Mapping[str, str]) -> Resources:
    """The same amounts under the names by which people ask for them on a node so labelled."""
    profile = profile_of(labels)
    total: dict[str, int] = {}
    for name, value in amounts.items():
        known = f"{MIG}{profile}" if profile and name == GPU else canonical(name)
        total[known] = total.get(known, 0) + value
    return Resources.of(total)


def lacks_devices(node: Node) -> str:
    """The label that promises devices which the node does not count; empty when all is well."""
    labels = node.metadata.labels or {}
    promised = [name for name in GPU_LABELS if labels.get(name) not in (None, "", "false", "0")]
    counted = node.status.capacity or {}
    if not promised or any(is_device(name) and text != "0" for name, text in counted.items()):
        return ""
    return promised[0]


def place(requests: Resources, limits: Resources, nodes: Iterable[Node]) -> Placement:
    """How to ask this cluster, with its nodes as they are, for `requests` of each replica."""
    known = list(nodes)
    swapped: dict[str, str] = {}
    expressions: list[Mapping[str, object]] = []
    for name in requests:
        if not name.startswith(MIG) or _counted(name, known):
            continue
        if old := _old_spelling(name, known):
            swapped[name] = old
        elif products := _products(name.removeprefix(MIG), known):
            swapped[name] = GPU
            expressions.append(_in(PRODUCT, products))
    if requests.get(GPU):
        sliced = _all_sliced(known)
        if sliced:
            expressions.append(_not_in(PRODUCT, sliced))
    asked = _swapped(requests, swapped)
    devices = Resources.of({name: n for name, n in asked.items() if is_device(name)})
    return Placement(
        requests=asked,
        limits=_limits(_swapped(limits, swapped), devices),
        expressions=tuple(expressions),
        tolerated=tuple(devices),
    )


def _limits(limits: Resources, devices: Resources) -> Resources:
    """Devices are never shared: their limit is their request, whatever was written."""
    rest = {name: value for name, value in limits.items() if not is_device(name)}
    return Resources.of({**rest, **devices.as_dict()})


def _swapped(amounts: Resources, names: Mapping[str, str]) -> Resources:
    if not names:
        return amounts
    total = NOTHING
    for name, value in amounts.items():
        total = total + Resources.of({names.get(name, name): value})
    return total


def _counted(resource: str, nodes: Sequence[Node]) -> bool:
    return any(resource in (node.status.allocatable or {}) for node in nodes)


def _old_spelling(resource: str, nodes: Sequence[Node]) -> str:
    """The name under which nodes count `resource`, when that is not its own; or empty."""
    counted = {name for node in nodes for name in node.status.allocatable or {}}
    return min((name for name in counted if canonical(name) == resource), default="")


def _products(profile: str, nodes: Sequence[Node]) -> list[str]:
    labels = (node.metadata.labels or {} for node in nodes)
    return sorted({one[PRODUCT] for one in labels if profile_of(one) == profile})


def _all_sliced(nodes: Sequence[Node]) -> list[str]:
    labels = (node.metadata.labels or {} for node in nodes)
    return sorted({one[PRODUCT] for one in labels if profile_of(one)})


def _in(key: str, values: Sequence[str]) -> Mapping[str, object]:
    return {"key": key, "operator": "In", "values": list(values)}


def _not_in(key: str, values: Sequence[str]) -> Mapping[str, object]:
    return {"key": key, "operator": "NotIn", "values": list(values)}
