"""What is read of the cluster's objects: a few fields each, the rest is skipped while decoding.

Every field has a default, since a bookmark is an object with a version and nothing else, and
since a cluster newer than this code may leave anything out.
"""

from __future__ import annotations

from typing import Final, Generic, TypeVar

import msgspec


class Seen(msgspec.Struct, frozen=True, kw_only=True, rename="camel", gc=False):
    """Base of everything read."""


class Meta(Seen, frozen=True):
    name: str = ""
    namespace: str = ""
    uid: str = ""
    resource_version: str = ""
    labels: dict[str, str] | None = None
    annotations: dict[str, str] | None = None
    creation_timestamp: str | None = None
    deletion_timestamp: str | None = None
    deletion_grace_period_seconds: int | None = None

    def label(self, name: str) -> str:
        return (self.labels or {}).get(name, "")

    def annotation(self, name: str) -> str:
        return (self.annotations or {}).get(name, "")


class Identity(Seen, frozen=True):
    """As little as can be known of an object."""

    name: str = ""
    namespace: str = ""
    uid: str = ""
    resource_version: str = ""


class Named(Seen, frozen=True):
    """Any object, for who it is and whose it is."""

    metadata: Meta = Meta()


class Condition(Seen, frozen=True):
    type: str = ""
    status: str = ""
    reason: str | None = None
    message: str | None = None
    last_transition_time: str | None = None


class WaitingState(Seen, frozen=True):
    reason: str = ""
    message: str = ""


class RunningState(Seen, frozen=True):
    started_at: str | None = None


class TerminatedState(Seen, frozen=True):
    exit_code: int = 0
    signal: int | None = None
    reason: str = ""
    message: str = ""
    started_at: str | None = None
    finished_at: str | None = None


class ContainerState(Seen, frozen=True):
    waiting: WaitingState | None = None
    running: RunningState | None = None
    terminated: TerminatedState | None = None


class ContainerStatus(Seen, frozen=True):
    name: str = ""
    restart_count: int = 0
    state: ContainerState = ContainerState()


class PodSpec(Seen, frozen=True):
    node_name: str | None = None


class PodStatus(Seen, frozen=True):
    phase: str = "Pending"
    reason: str | None = None
    message: str | None = None
    start_time: str | None = None
    conditions: list[Condition] | None = None
    container_statuses: list[ContainerStatus] | None = None
    init_container_statuses: list[ContainerStatus] | None = None


class Pod(Seen, frozen=True):
    """A pod of ours."""

    metadata: Meta = Meta()
    spec: PodSpec = PodSpec()
    status: PodStatus = PodStatus()


class Requests(Seen, frozen=True):
    requests: dict[str, str] | None = None


class AnyContainer(Seen, frozen=True):
    resources: Requests = Requests()
    restart_policy: str | None = None


class AnyPodSpec(Seen, frozen=True):
    node_name: str = ""
    containers: list[AnyContainer] | None = None
    init_containers: list[AnyContainer] | None = None
    overhead: dict[str, str] | None = None


class AnyPod(Seen, frozen=True):
    """A pod of somebody else, for what it takes from its node."""

    metadata: Identity = Identity()
    spec: AnyPodSpec = AnyPodSpec()


class JobSpec(Seen, frozen=True):
    suspend: bool | None = None


class JobStatus(Seen, frozen=True):
    start_time: str | None = None
    completion_time: str | None = None
    conditions: list[Condition] | None = None


class Job(Seen, frozen=True):
    metadata: Meta = Meta()
    spec: JobSpec = JobSpec()
    status: JobStatus = JobStatus()


class Taint(Seen, frozen=True):
    key: str = ""
    effect: str = ""


class NodeSpec(Seen, frozen=True):
    unschedulable: bool = False
    taints: list[Taint] | None = None


class NodeStatus(Seen, frozen=True):
    allocatable: dict[str, str] | None = None
    capacity: dict[str, str] | None = None
    conditions: list[Condition] | None = None


class NodeMeta(Seen, frozen=True):
    """Without annotations, of which nodes have many."""

    name: str = ""
    uid: str = ""
    resource_version: str = ""
    labels: dict[str, str] | None = None
    deletion_timestamp: str | None = None


class Node(Seen, frozen=True):
    metadata: NodeMeta = NodeMeta()
    spec: NodeSpec = NodeSpec()
    status: NodeStatus = NodeStatus()


class Involved(Seen, frozen=True):
    uid: str = ""
    name: str = ""
    namespace: str = ""


class Event(Seen, frozen=True):
    """Something that happened to a Job."""

    metadata: Identity = Identity()
    involved_object: Involved = Involved()
    reason: str | None = None
    message: str | None = None
    type: str | None = None


class ErrorStatus(Seen, frozen=True):
    """What the API server says when it says no."""

    code: int = 0
    reason: str = ""
    message: str = ""
    details: Details | None = None


class Details(Seen, frozen=True):
    name: str = ""
    kind: str = ""
    retry_after_seconds: int | None = None


class ListMeta(Seen, frozen=True):
    resource_version: str = ""
    continue_: str = msgspec.field(default="", name="continue")


T = TypeVar("T")


class Page(Seen, Generic[T], frozen=True):
    """Part of a list."""

    metadata: ListMeta = ListMeta()
    items: list[T] | None = None


class Happening(msgspec.Struct, frozen=True):
    """One line of a watch."""

    type: str
    object: msgspec.Raw = msgspec.Raw(b"{}")


class Versioned(Seen, frozen=True):
    """What a bookmark is."""

    metadata: Identity = Identity()


TRUE: Final = "True"


def condition(conditions: list[Condition] | None, kind: str) -> Condition | None:
    """The condition of type `kind`, whatever its status."""
    for one in conditions or ():
        if one.type == kind:
            return one
    return None


def holds(conditions: list[Condition] | None, kind: str) -> Condition | None:
    """The condition of type `kind` if it is true."""
    found = condition(conditions, kind)
    return found if found is not None and found.status == TRUE else None
