"""The other documents of the users' API: accounts, projects, tokens, clusters, pipelines.

The command line reads with these, so what a newer server adds is ignored.
"""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Generic, TypeVar

import msgspec
from msgspec import Meta

from verderer.wire.problems import ProblemPlace

T = TypeVar("T")


class Listing(msgspec.Struct, Generic[T], frozen=True):
    """One page of a list; `next` is given as `after` for the one that follows."""

    items: list[T]
    next: str | None = None


class TokenGiven(msgspec.Struct, frozen=True, kw_only=True):
    """The answer to a login; the token is shown this once."""

    token: str
    email: str
    expires_at: datetime | None = None


class Account(msgspec.Struct, frozen=True, kw_only=True):
    """Who the credential stands for."""

    email: str
    name: str
    platform_admin: bool
    read_only: bool
    roles: dict[str, str]


class ProjectInfo(msgspec.Struct, frozen=True, kw_only=True):
    """A project."""

    name: str
    title: str
    created_at: datetime
    group: str = ""


class TokenInfo(msgspec.Struct, frozen=True, kw_only=True):
    """Everything about a token but the token."""

    id: int
    name: str
    hint: str
    read_only: bool
    created_at: datetime
    expires_at: datetime | None
    used_at: datetime | None


class TokenMade(msgspec.Struct, frozen=True, kw_only=True):
    """`token` is shown this once."""

    token: str
    info: TokenInfo


class UserInfo(msgspec.Struct, frozen=True, kw_only=True):
    """An account, as platform admins see it."""

    email: str
    name: str
    platform_admin: bool
    active: bool
    must_change: bool
    """Has not replaced the one-time password yet."""
    created_at: datetime


class UserMade(msgspec.Struct, frozen=True, kw_only=True):
    """`password` works once, for choosing another, and is shown this once."""

    user: UserInfo
    password: str


class CapacityOut(msgspec.Struct, frozen=True, kw_only=True):
    """One resource of a cluster, in Kubernetes quantities."""

    resource: Annotated[str, Meta(examples=["nvidia.com/gpu"])]
    total: Annotated[str, Meta(examples=["64"], description="Of all ready nodes.")]
    largest: Annotated[str, Meta(examples=["8"], description="Of any one ready node.")]
    reserved: Annotated[str, Meta(examples=["48"])]
    free: Annotated[str, Meta(examples=["16"])]


class ClusterOut(msgspec.Struct, frozen=True, kw_only=True):
    """A cluster and what it can give."""

    id: Annotated[str, Meta(examples=["proj-a-gpu"])]
    kind: Annotated[str, Meta(examples=["kubernetes"])]
    state: Annotated[
        str,
        Meta(
            description="online, offline, disabled, unfit (a required check does not pass), "
            "joining (waits for its agent) or never",
            examples=["online"],
        ),
    ]
    enabled: bool
    seen_at: datetime | None
    silent_s: Annotated[float | None, Meta(description="Seconds since it was last heard of.")]
    agent_version: str
    nodes: int
    ready: Annotated[int, Meta(description="Nodes that may receive work.")]
    capacity: list[CapacityOut]
    created_at: datetime


class NodeOut(msgspec.Struct, frozen=True, kw_only=True):
    """A node as its agent last reported it."""

    name: str
    ready: bool
    capacity: dict[str, str]
    labels: dict[str, str]
    cpu_load: Annotated[float | None, Meta(description="Busy share of all cores, 0 to 1.")]
    memory_free: Annotated[int | None, Meta(description="Bytes.")]
    reported_at: datetime


class LiveOut(msgspec.Struct, frozen=True, kw_only=True):
    """One of the caller's own attempts that is under way on the cluster."""

    run: str
    name: str
    project: str
    step: str
    attempt: int
    state: str
    node: str
    started_at: datetime | None


class CheckOut(msgspec.Struct, frozen=True, kw_only=True):
    """One thing that has to be right beside the cluster, as its agent found it."""

    name: str
    level: Annotated[str, Meta(description="pass, warn, fail or unknown")]
    required: Annotated[bool, Meta(description="The cluster gets no work unless it passes.")]
    message: str
    remedy: str
    checked_at: datetime


class ClusterDetailOut(ClusterOut, frozen=True, kw_only=True):
    """A cluster with its checks, its nodes and what the caller runs there."""

    checks: list[CheckOut] = []
    node_list: list[NodeOut]
    live: list[LiveOut]


class ClusterIn(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    """A cluster whose agent shall join."""

    id: Annotated[str, Meta(max_length=63, examples=["proj-a-gpu"])]
    kind: Annotated[str, Meta(max_length=20, examples=["kubernetes"])]
    minutes: Annotated[int, Meta(ge=1, le=10_080, description="How long the join token works.")] = (
        60
    )


class LostOut(msgspec.Struct, frozen=True, kw_only=True):
    """How many attempts were given up."""

    attempts: int


class InvitationOut(msgspec.Struct, frozen=True, kw_only=True):
    """`token` lets one agent join, once, and is shown this once."""

    cluster: str
    kind: str
    token: str
    expires_at: datetime
    command: Annotated[str, Meta(description="What to run beside the cluster.")]


class ValidateIn(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    """A pipeline to check; with `parameters` their values are checked too."""

    pipeline: str
    parameters: dict[str, str | int | float | bool] | None = None


class ParameterOut(msgspec.Struct, frozen=True, kw_only=True):
    """A value that whoever submits the pipeline may choose."""

    name: str
    type: str
    default: Annotated[str | None, Meta(description="null: a value must be given.")]
    description: str
    choices: list[str]


class PlannedStep(msgspec.Struct, frozen=True, kw_only=True):
    """A step as it would be run."""

    name: str
    instances: int
    needs: list[str]
    requests: dict[str, str]
    nodes: int


class ValidationOut(msgspec.Struct, frozen=True, kw_only=True):
    """Every problem of a pipeline, or what it would expand to."""

    valid: bool
    problems: list[ProblemPlace]
    name: str = ""
    project: str = ""
    instances: Annotated[int, Meta(description="Steps of a run, every matrix expanded.")] = 0
    edges: int = 0
    steps: list[PlannedStep] = []
    parameters: list[ParameterOut] = []


class Alive(msgspec.Struct, frozen=True):
    """What the health check says."""

    status: str


class Readiness(msgspec.Struct, frozen=True):
    """`parts` says of each what is missing, or `ok`."""

    ready: bool
    parts: dict[str, str]
