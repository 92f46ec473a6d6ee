"""Why something has not begun yet: a code, numbers, and the cluster's own words. Pure and total."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final

from verderer.core.model.waiting import Pending, Waiting
from verderer.drivers.kubernetes import naming
from verderer.drivers.kubernetes.seen.sights import Job, Pod, WaitingState, condition, holds


@dataclass(frozen=True, slots=True, kw_only=True)
class Unschedulable:
    """A message of the scheduler, taken apart."""

    nodes: int
    available: int
    reasons: Mapping[str, int]
    """How many nodes each reason rules out, in the scheduler's words."""
    short: Mapping[str, int]
    """How many nodes lack each resource."""
    unmatched: int
    """Nodes ruled out by selectors, affinity and taints."""


_HEAD: Final = re.compile(r"(?P<fit>\d+)/(?P<all>\d+) nodes are available:?\s*")
# A reason may hold commas and full stops in braces: `untolerated taint {a: b}`.
_REASON: Final = re.compile(
    r"(?P<count>\d+) (?P<words>(?:\{[^{}]*\}|[^,{}])+?)(?=,\s*\d+ |\.?\s*$)"
)
_INSUFFICIENT: Final = re.compile(r"Insufficient (?P<resource>[^\s,{}]+)")
_TOO_MANY: Final = "Too many pods"
_MATCHING: Final = ("taint", "affinity", "selector", "unschedulable", "topology")


def parse_unschedulable(message: str) -> Unschedulable | None:
    """Read `0/4 nodes are available: 3 Insufficient nvidia.com/gpu, …`; None for another text."""
    head = _HEAD.search(message)
    if head is None:
        return None
    body = message[head.end() :].split(" preemption:", 1)[0].strip().rstrip(".")
    reasons: dict[str, int] = {}
    short: dict[str, int] = {}
    unmatched = 0
    for found in _REASON.finditer(body):
        words, count = found["words"].strip(), _number(found["count"])
        reasons[words] = reasons.get(words, 0) + count
        lacking = _INSUFFICIENT.fullmatch(words)
        if lacking is not None:
            short[lacking["resource"]] = short.get(lacking["resource"], 0) + count
        elif words == _TOO_MANY:
            short["pods"] = short.get("pods", 0) + count
        elif any(word in words for word in _MATCHING):
            unmatched += count
    return Unschedulable(
        nodes=_number(head["all"]),
        available=_number(head["fit"]),
        reasons=MappingProxyType(reasons),
        short=MappingProxyType(short),
        unmatched=unmatched,
    )


def explain(
    pods: Sequence[Pod], *, nodes: int, job: Job | None = None, refusal: str = ""
) -> Waiting:
    """Why an attempt with these pods has not begun. `refusal`: a pod could not even be made."""
    if refusal:
        return _refused(refusal)
    if job is not None and (queued := _queued(job)):
        return queued
    found = [waits for pod in pods if (waits := _pod(pod)) is not None]
    if not found:
        return Waiting(code=Pending.UNKNOWN, message="the cluster has not made its pods yet")
    worst = max(found, key=_weight)
    placed = sum(1 for pod in pods if pod.spec.node_name)
    if 0 < placed < nodes and worst.code in (Pending.RESOURCES, Pending.NODES):
        return Waiting(
            code=Pending.GANG,
            message=f"{placed} of {nodes} replicas have a place; {worst.message}",
            numbers={**worst.numbers, "replicas": nodes, "placed": placed},
        )
    return worst


def _refused(message: str) -> Waiting:
    if "exceeded quota" in message or "failed quota" in message:
        return Waiting(code=Pending.QUOTA, message=message, numbers=quota_numbers(message))
    if "service account" in message:
        return Waiting(code=Pending.CONFIGURATION, message=message, hopeless=True)
    return Waiting(code=Pending.POLICY, message=message, hopeless=True)


def _queued(job: Job) -> Waiting | None:
    suspended = holds(job.status.conditions, "Suspended")
    if not job.spec.suspend:
        return None
    queue = job.metadata.label(naming.QUEUE)
    words = suspended.message if suspended is not None else ""
    message = f"it stands in queue {queue}" if queue else words or "its Job is suspended"
    return Waiting(code=Pending.QUEUE, message=message)


def _pod(pod: Pod) -> Waiting | None:
    """What one pod waits for; None when it waits for nothing."""
    if pod.status.phase != "Pending":
        return None
    scheduled = condition(pod.status.conditions, "PodScheduled")
    if scheduled is not None and scheduled.status != "True":
        return _unscheduled(scheduled.reason or "", scheduled.message or "")
    statuses = [*(pod.status.init_container_statuses or ()), *(pod.status.container_statuses or ())]
    for one in statuses:
        if one.state.waiting is not None and one.state.waiting.reason in _CONTAINERS:
            return _container(one.state.waiting)
    return Waiting(code=Pending.CREATING, message="its container is being made")


def _unscheduled(reason: str, message: str) -> Waiting:
    if reason == "SchedulingGated":
        return Waiting(code=Pending.QUEUE, message=message or "scheduling is gated")
    parsed = parse_unschedulable(message)
    if parsed is None:
        code = Pending.VOLUME if "persistentvolumeclaim" in message.lower() else Pending.NODES
        return Waiting(code=code, message=message or "it has no node yet")
    numbers = {"nodes": parsed.nodes, "nodes_unmatched": parsed.unmatched}
    numbers.update({f"nodes_short_of {name}": count for name, count in parsed.short.items()})
    code = Pending.RESOURCES if parsed.short else Pending.NODES
    return Waiting(code=code, message=message, numbers=numbers)


def _container(state: WaitingState) -> Waiting:
    code = _CONTAINERS[state.reason]
    return Waiting(
        code=code, message=f"{state.reason}: {state.message}".rstrip(": "), hopeless=True
    )


def at_once(waits: Waiting) -> bool:
    """Whether no amount of waiting can help, so that the step may fail now."""
    return waits.hopeless and waits.message.startswith(_NEVER)


_QUOTA: Final = re.compile(
    r"exceeded quota: (?P<name>[^,]+), requested: (?P<requested>.+?), used: (?P<used>.+?), "
    r"limited: (?P<limited>.+?)$"
)


def quota_numbers(message: str) -> dict[str, int]:
    """`exceeded quota: q, requested: pods=1, used: pods=5, limited: pods=5` as whole numbers.

    Only plain counts are taken: cores and bytes stay in the message.
    """
    found = _QUOTA.search(message)
    if found is None:
        return {}
    numbers = {}
    for part in ("requested", "used", "limited"):
        for item in found[part].split(","):
            name, equals, amount = item.strip().rpartition("=")
            if equals and amount.isascii() and amount.isdigit():
                numbers[f"{part} {name}"] = _number(amount)
    return numbers


def _number(digits: str) -> int:
    """Bounded: the text comes from outside."""
    return int(digits[:12])


def _weight(waits: Waiting) -> int:
    return _WEIGHTS.index(waits.code)


_WEIGHTS: Final = (
    Pending.UNKNOWN,
    Pending.CREATING,
    Pending.VOLUME,
    Pending.GANG,
    Pending.QUEUE,
    Pending.NODES,
    Pending.RESOURCES,
    Pending.CONFIGURATION,
    Pending.IMAGE,
    Pending.QUOTA,
    Pending.POLICY,
)
_NEVER: Final = ("InvalidImageName", "ErrImageNeverPull")
_CONTAINERS: Final[Mapping[str, Pending]] = MappingProxyType(
    {
        "ErrImagePull": Pending.IMAGE,
        "ImagePullBackOff": Pending.IMAGE,
        "InvalidImageName": Pending.IMAGE,
        "ErrImageNeverPull": Pending.IMAGE,
        "ImageInspectError": Pending.IMAGE,
        "RegistryUnavailable": Pending.IMAGE,
        "SignatureValidationFailed": Pending.IMAGE,
        "CreateContainerConfigError": Pending.CONFIGURATION,
        "CreateContainerError": Pending.CONFIGURATION,
        "RunContainerError": Pending.CONFIGURATION,
        "PreCreateHookError": Pending.CONFIGURATION,
        "PostStartHookError": Pending.CONFIGURATION,
    }
)
