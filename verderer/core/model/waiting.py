"""Why a cluster lets an attempt wait that it was given: a code, numbers, and its own words."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from types import MappingProxyType
from typing import Final


class Pending(StrEnum):
    """What an attempt waits for on its cluster."""

    RESOURCES = "resources"  # the cluster's nodes lack what it asks for
    NODES = "nodes"  # no node matches: selectors, affinity, taints, features
    PRIORITY = "priority"  # others of a higher priority wait for the same nodes
    QUEUE = "queue"  # a queue of the cluster holds it back
    GANG = "gang"  # some replicas have a place, others have not
    QUOTA = "quota"  # the namespace's quota, or a limit of the account, is full
    UNAVAILABLE = "unavailable"  # nodes or partitions that it needs are down or reserved
    HELD = "held"  # somebody holds it back, or it waits for another job or for its time
    POLICY = "policy"  # the cluster's rules refuse it: PodSecurity, RBAC, webhooks, limits
    IMAGE = "image"  # the image cannot be pulled
    CONFIGURATION = "configuration"  # a Secret or ConfigMap is missing, or the container is wrong
    VOLUME = "volume"  # a volume cannot be found, bound or mounted
    CREATING = "creating"  # it has a node and is being made there
    UNKNOWN = "unknown"  # the cluster has not said anything yet


@dataclass(frozen=True, slots=True, kw_only=True)
class Waiting:
    """One reason, the heaviest first."""

    code: Pending
    message: str = ""
    """What the cluster says, or a sentence of ours when it says nothing."""
    numbers: Mapping[str, int] = field(default_factory=dict)
    """Such as nodes, and how many of them lack what."""
    hopeless: bool = False
    """It will not begin unless the step or the cluster is changed."""

    @property
    def sentence(self) -> str:
        """The cluster's words, or what the code means when it has none."""
        return self.message or PENDING_SENTENCES[self.code]

    @property
    def change(self) -> str:
        """The nearest change that would start it, as one English sentence; may be empty."""
        return PENDING_CHANGES.get(self.code, "")


PENDING_SENTENCES: Final[Mapping[Pending, str]] = MappingProxyType(
    {
        Pending.RESOURCES: "the cluster's nodes lack what it asks for",
        Pending.NODES: "no node of the cluster matches what it asks for",
        Pending.PRIORITY: "work of a higher priority waits for the same nodes",
        Pending.QUEUE: "a queue of the cluster holds it back",
        Pending.GANG: "some of its replicas have a place, others have not",
        Pending.QUOTA: "a quota or limit of the cluster is reached",
        Pending.UNAVAILABLE: "nodes that it needs are down, drained or reserved",
        Pending.HELD: "somebody holds it back on the cluster, or it waits for its time",
        Pending.POLICY: "the cluster's rules refuse it",
        Pending.IMAGE: "its image cannot be pulled",
        Pending.CONFIGURATION: "its container cannot be made as it is described",
        Pending.VOLUME: "a volume of it cannot be mounted",
        Pending.CREATING: "it is being made on its node",
        Pending.UNKNOWN: "the cluster has not said anything about it yet",
    }
)
PENDING_CHANGES: Final[Mapping[Pending, str]] = MappingProxyType(
    {
        Pending.RESOURCES: "free what the nodes are short of, ask for less, or add nodes",
        Pending.NODES: "let a node match: its labels, taints or features, or what the step asks",
        Pending.PRIORITY: "wait for the work before it, or raise its priority on the cluster",
        Pending.QUEUE: "the owner of the cluster's queue can admit it",
        Pending.GANG: "free room for all replicas at once, or ask for fewer",
        Pending.QUOTA: "end other work under this quota, or have an admin of the cluster raise it",
        Pending.UNAVAILABLE: "bring the nodes or the partition back into service",
        Pending.HELD: "whoever holds it can release it on the cluster",
        Pending.POLICY: "change the step, or have an admin of the cluster change the rule",
        Pending.IMAGE: "correct the image's name, or give the cluster access to its registry",
        Pending.CONFIGURATION: "make what is missing, or correct the step",
        Pending.VOLUME: "make the volume available on the cluster",
    }
)
