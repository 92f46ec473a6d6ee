"""Builders of what a cluster shows."""

from __future__ import annotations

from typing import Any

import msgspec

from verderer.drivers.kubernetes import naming
from verderer.drivers.kubernetes.seen.sights import AnyPod, Job, Node, Pod

STARTED = "2026-12-01T10:00:00Z"
ENDED = "2026-12-01T10:05:00Z"
STARTED_MS = 1_796_119_200_000
ENDED_MS = STARTED_MS + 300_000


def pod(
    rank: int = 0,
    phase: str = "Running",
    *,
    uid: str = "",
    state: dict[str, Any] | None = None,
    reason: str = "",
    message: str = "",
    conditions: list[dict[str, Any]] | None = None,
    node: str = "node-0",
    deleted: str = "",
    grace: int = 0,
) -> Pod:
    meta: dict[str, Any] = {
        "name": f"p{rank}",
        "uid": uid or f"pod-{rank}",
        "labels": {naming.COMPLETION_INDEX: str(rank), "controller-uid": "job-1"},
    }
    if deleted:
        meta |= {"deletionTimestamp": deleted, "deletionGracePeriodSeconds": grace}
    status: dict[str, Any] = {"phase": phase, "conditions": conditions or []}
    if reason:
        status |= {"reason": reason, "message": message}
    if state is not None:
        status["containerStatuses"] = [{"name": naming.CONTAINER, "state": state}]
    document = {"metadata": meta, "spec": {"nodeName": node}, "status": status}
    return msgspec.convert(document, Pod)


def running(rank: int = 0, at: str = STARTED, **fields: Any) -> Pod:
    return pod(rank, "Running", state={"running": {"startedAt": at}}, **fields)


def ended(
    code: int, rank: int = 0, *, reason: str = "Error", at: str = ENDED, **fields: Any
) -> Pod:
    state = {"exitCode": code, "reason": reason, "startedAt": STARTED, "finishedAt": at}
    return pod(rank, "Failed" if code else "Succeeded", state={"terminated": state}, **fields)


def waiting(reason: str, message: str = "", rank: int = 0) -> Pod:
    state = {"waiting": {"reason": reason, "message": message}}
    scheduled = {"type": "PodScheduled", "status": "True"}
    return pod(rank, "Pending", state=state, conditions=[scheduled])


def unscheduled(message: str, rank: int = 0, reason: str = "Unschedulable") -> Pod:
    condition = {"type": "PodScheduled", "status": "False", "reason": reason, "message": message}
    return pod(rank, "Pending", conditions=[condition], node="")


def disrupted(reason: str, **fields: Any) -> dict[str, Any]:
    return {"type": "DisruptionTarget", "status": "True", "reason": reason, **fields}


def job(
    *conditions: tuple[str, str, str],
    completed: str = "",
    deleted: str = "",
    suspend: bool = False,
    queue: str = "",
) -> Job:
    meta: dict[str, Any] = {"name": "v", "uid": "job-1", "labels": {naming.QUEUE: queue}}
    if deleted:
        meta["deletionTimestamp"] = deleted
    document = {
        "metadata": meta,
        "spec": {"suspend": suspend},
        "status": {
            "completionTime": completed or None,
            "conditions": [
                {
                    "type": kind,
                    "status": "True",
                    "reason": reason,
                    "message": message,
                    "lastTransitionTime": ENDED,
                }
                for kind, reason, message in conditions
            ],
        },
    }
    return msgspec.convert(document, Job)


def node(
    name: str = "n0",
    amounts: dict[str, str] | None = None,
    *,
    labels: dict[str, str] | None = None,
    ready: str = "True",
    **spec: Any,
) -> Node:
    given = amounts or {"cpu": "64", "memory": "512Gi", "pods": "110"}
    document = {
        "metadata": {"name": name, "labels": labels or {}},
        "spec": spec,
        "status": {
            "allocatable": given,
            "capacity": given,
            "conditions": [{"type": "Ready", "status": ready}],
        },
    }
    return msgspec.convert(document, Node)


def any_pod(
    *requests: dict[str, str],
    before: list[dict[str, Any]] | None = None,
    on: str = "n0",
    overhead: dict[str, str] | None = None,
) -> AnyPod:
    document = {
        "metadata": {"uid": "u"},
        "spec": {
            "nodeName": on,
            "containers": [{"resources": {"requests": one}} for one in requests],
            "initContainers": before or [],
            "overhead": overhead,
        },
    }
    return msgspec.convert(document, AnyPod)
