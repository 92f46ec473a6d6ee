"""The documents about resource groups, grants and approvals."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated

import msgspec
from msgspec import Meta

Quantity = Annotated[
    str, Meta(description="As Kubernetes writes it.", examples=["8", "500m", "2Ti"], max_length=40)
]
Name = Annotated[str, Meta(max_length=63)]


class GroupIn(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    """A resource group as it should be; what is left out is as in a new one."""

    title: Annotated[str, Meta(max_length=200)] = ""
    clusters: Annotated[
        list[Name] | None, Meta(description="Their ids; null: every cluster, later ones too.")
    ] = None
    labels: Annotated[
        dict[str, str],
        Meta(description="What a run's labels must say to be let in.", examples=[{"team": "b"}]),
    ] = {}
    order: Annotated[
        str, Meta(description="fair: of the project that has least; fifo: that waits longest")
    ] = "fair"
    quota: Annotated[
        dict[str, Quantity],
        Meta(
            description="How much may be reserved at a time; what is not named is unlimited.",
            examples=[{"nvidia.com/gpu": "64"}],
        ),
    ] = {}


class NewGroup(GroupIn, forbid_unknown_fields=True, kw_only=True):
    """A resource group to make. Its name stays for ever."""

    name: Name


class AccountOut(msgspec.Struct, frozen=True, kw_only=True):
    """One resource of a group."""

    resource: str
    quota: str | None
    """None: unlimited."""
    target: str | None
    """A lower quota that this one sinks to as work ends."""
    reserved: str
    healthy: str
    """What its clusters can give now, to all groups together."""


class GrantOut(msgspec.Struct, frozen=True, kw_only=True):
    """A project group that may use a resource group."""

    project_group: str
    kind: Annotated[str, Meta(description="default or optional")]
    expires_at: datetime | None
    granted_by: str
    granted_at: datetime


class ShareOut(msgspec.Struct, frozen=True, kw_only=True):
    """What one of the caller's projects holds of a group."""

    project: str
    resource: str
    reserved: str


class GroupOut(msgspec.Struct, frozen=True, kw_only=True):
    """A resource group."""

    name: str
    title: str
    every_cluster: bool
    clusters: Annotated[dict[str, bool], Meta(description="Whether each can be worked with now.")]
    labels: dict[str, str]
    order: str
    version: int
    accounts: list[AccountOut]
    grants: list[GrantOut]


class GroupDetailOut(GroupOut, frozen=True, kw_only=True):
    """A resource group with what the caller's projects hold of it."""

    shares: list[ShareOut]


class QuotaChangeOut(msgspec.Struct, frozen=True, kw_only=True):
    """What becomes of one quota. None: unlimited."""

    resource: str
    before: str | None
    after: str | None
    reserved: str
    sinks: bool
    """More is reserved than it will be: it follows down as work ends."""


class PreviewOut(msgspec.Struct, frozen=True, kw_only=True):
    """What a change would do."""

    never: Annotated[int, Meta(description="Waiting steps that could then never start.")]
    freed: Annotated[int, Meta(description="Waiting steps that never could, and then may.")]
    quotas: list[QuotaChangeOut]
    leaving: Annotated[
        dict[str, int], Meta(description="Clusters that leave, with what goes on there.")
    ]
    joining: list[str]


class GrantIn(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    """How a project group may use a resource group."""

    kind: Annotated[str, Meta(description="default or optional", pattern="^(default|optional)$")]
    expires_at: datetime | None = None


class EntitlementOut(msgspec.Struct, frozen=True, kw_only=True):
    """A resource group as one project sees it."""

    name: str
    title: str
    kind: Annotated[str | None, Meta(description="default, optional, or null: not granted")]
    expires_at: datetime | None
    labels: dict[str, str]
    asked: bool
    """Access was asked for and is not decided."""


class RequestIn(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    """Something to ask for: access, or with `quota` larger quotas."""

    project: Name
    resource_group: Name
    reason: Annotated[str, Meta(max_length=1000)]
    quota: dict[str, Quantity] = {}
    expires_at: Annotated[datetime | None, Meta(description="Access until then alone.")] = None


class ApprovalOut(msgspec.Struct, frozen=True, kw_only=True):
    """A request and what became of it."""

    id: int
    kind: Annotated[str, Meta(description="access or quota")]
    project_group: str
    resource_group: str
    quota: dict[str, str]
    reason: str
    expires_at: datetime | None
    state: Annotated[str, Meta(description="requested, approved, denied, withdrawn or expired")]
    requested_by: str
    requested_at: datetime
    decided_by: str
    decided_at: datetime | None
    note: str


class AskedOut(msgspec.Struct, frozen=True, kw_only=True):
    """The number of a request."""

    id: int


class DecisionIn(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    """Why."""

    note: Annotated[str, Meta(max_length=1000)] = ""


class NewTeam(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    """A project group to make. Its name stays for ever."""

    name: Name
    title: Annotated[str, Meta(max_length=200)] = ""


class TeamOut(msgspec.Struct, frozen=True, kw_only=True):
    """A project group."""

    name: str
    title: str
    created_at: datetime
    projects: list[str]
    """Those that the caller may see."""
