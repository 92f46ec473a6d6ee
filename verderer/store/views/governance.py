"""Resource groups as pages show them: what they have, may use and hold, and who may use them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from verderer.core.model.actor import Scope
from verderer.store.database import Row, Tx

# Healthy: of clusters that are in use and were heard of. Figures of whole groups are no secret of
# a project; those of single projects are narrowed to the reader's own.
_GROUPS = """
    WITH members AS (
        SELECT g.id, c.id AS cluster, c.cluster_id,
               c.enabled AND c.unfit = '' AND h.seen_at > now() - interval '30 s' AS online
          FROM resource_groups AS g
          JOIN clusters AS c ON c.retired_at IS NULL AND (g.every_cluster OR EXISTS (
               SELECT FROM resource_group_clusters AS m
                WHERE m.resource_group_id = g.id AND m.cluster_id = c.id))
          LEFT JOIN heartbeats AS h ON h.cluster_id = c.id
         WHERE g.retired_at IS NULL AND ($1::text IS NULL OR g.name = $1))
    SELECT g.id, g.name, g.title, g.every_cluster, g.labels, g.queue_order, g.version,
           coalesce((SELECT jsonb_object_agg(m.cluster_id, coalesce(m.online, false))
                       FROM members AS m WHERE m.id = g.id), '{}') AS clusters,
           coalesce((SELECT jsonb_object_agg(resource, n)
                       FROM (SELECT k.resource, sum(k.allocatable) AS n
                               FROM members AS m JOIN capacity AS k ON k.cluster_id = m.cluster
                              WHERE m.id = g.id AND m.online GROUP BY 1) AS s), '{}') AS healthy,
           coalesce((SELECT jsonb_object_agg(resource, jsonb_build_array(quota, target, reserved))
                       FROM ledger AS l
                      WHERE l.resource_group_id = g.id AND l.project_id = 0), '{}') AS accounts
      FROM resource_groups AS g
     WHERE g.retired_at IS NULL AND ($1::text IS NULL OR g.name = $1)
     ORDER BY g.name
"""
_GRANTS = """
    SELECT t.resource_group_id, p.name AS project_group, t.kind::text, t.expires_at,
           t.granted_by, t.granted_at
      FROM grants AS t JOIN project_groups AS p ON p.id = t.project_group_id
     WHERE t.resource_group_id = ANY($1)
       AND ($2 OR EXISTS (SELECT FROM projects AS q
                           WHERE q.group_id = p.id AND q.id = ANY($3::int[])))
     ORDER BY t.kind, p.name
"""
_SHARES = """
    SELECT p.name AS project, l.resource, l.reserved
      FROM ledger AS l JOIN projects AS p ON p.id = l.project_id
     WHERE l.resource_group_id = $1 AND l.reserved > 0 AND ($2 OR p.id = ANY($3::int[]))
     ORDER BY p.name, l.resource
"""
_APPROVALS = """
    SELECT a.id, a.kind, p.name AS project_group, g.name AS resource_group, a.detail, a.reason,
           a.until, a.state::text AS state, a.requested_by, a.requested_at, a.decided_by,
           a.decided_at, a.note
      FROM approvals AS a
      JOIN project_groups AS p ON p.id = a.project_group_id
      JOIN resource_groups AS g ON g.id = a.resource_group_id
     WHERE ($1 OR EXISTS (SELECT FROM projects AS q
                           WHERE q.group_id = p.id AND q.id = ANY($2::int[])))
       AND ($3::text IS NULL OR a.state::text = $3) AND ($4::int IS NULL OR a.id < $4)
       AND ($6::int IS NULL OR a.id = $6)
     ORDER BY a.id DESC LIMIT $5
"""
_OF_PROJECT = """
    SELECT g.name, g.title, t.kind::text AS kind, t.expires_at, g.labels,
           EXISTS (SELECT FROM approvals AS a
                    WHERE a.project_group_id = p.group_id AND a.resource_group_id = g.id
                      AND a.kind = 'access' AND a.state = 'requested') AS asked
      FROM projects AS p
      JOIN resource_groups AS g ON g.retired_at IS NULL
      LEFT JOIN grants AS t ON t.project_group_id = p.group_id AND t.resource_group_id = g.id
                           AND (t.expires_at IS NULL OR t.expires_at > now())
     WHERE p.name = $3 AND ($1 OR p.id = ANY($2::int[]))
     ORDER BY t.kind NULLS LAST, g.name
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class AccountRow:
    """One resource of a group; milli-units or bytes."""

    resource: str
    quota: int | None
    """None: unlimited."""
    target: int | None
    """A lower quota that this one sinks to as work ends."""
    reserved: int
    healthy: int
    """What the group's clusters can give at this moment, all groups together."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GrantRow:
    """A project group that may use a resource group."""

    project_group: str
    kind: str
    expires_at: datetime | None
    granted_by: str
    granted_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupRow:
    """A resource group."""

    id: int
    name: str
    title: str
    every_cluster: bool
    labels: Mapping[str, str]
    order: str
    version: int
    clusters: Mapping[str, bool]
    """Whether each can be worked with, by cluster_id."""
    accounts: tuple[AccountRow, ...]
    grants: tuple[GrantRow, ...]
    """Those that the reader may know of."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ApprovalRow:
    """A request and what became of it."""

    id: int
    kind: str
    project_group: str
    resource_group: str
    detail: Mapping[str, int]
    reason: str
    until: datetime | None
    state: str
    requested_by: str
    requested_at: datetime
    decided_by: str
    decided_at: datetime | None
    note: str


@dataclass(frozen=True, slots=True, kw_only=True)
class EntitlementRow:
    """A resource group as one project sees it."""

    name: str
    title: str
    kind: str | None
    """None: not granted."""
    expires_at: datetime | None
    labels: Mapping[str, str]
    asked: bool
    """Access was asked for and is not decided."""


async def list_groups(tx: Tx, scope: Scope, name: str | None = None) -> list[GroupRow]:
    """Every resource group, or the one of that name."""
    rows = await tx.fetch(_GROUPS, name)
    given = await tx.fetch(
        _GRANTS, [row["id"] for row in rows], scope.everything, list(scope.projects)
    )
    return [_group(row, [g for g in given if g["resource_group_id"] == row["id"]]) for row in rows]


async def shares(tx: Tx, scope: Scope, group: int) -> list[tuple[str, str, int]]:
    """Project, resource and what it holds of the group, of projects that the reader sees."""
    rows = await tx.fetch(_SHARES, group, scope.everything, list(scope.projects))
    return [(row["project"], row["resource"], row["reserved"]) for row in rows]


async def list_approvals(
    tx: Tx,
    scope: Scope,
    *,
    state: str | None = None,
    number: int | None = None,
    before: int | None = None,
    limit: int = 50,
) -> list[ApprovalRow]:
    """Requests of the reader's project groups, the newest first; with `number` that one alone."""
    rows = await tx.fetch(
        _APPROVALS, scope.everything, list(scope.projects), state, before, limit, number
    )
    return [ApprovalRow(**dict(row)) for row in rows]


async def entitlements(tx: Tx, scope: Scope, project: str) -> list[EntitlementRow]:
    """Every resource group, those that the project may use first; empty: no such project."""
    rows = await tx.fetch(_OF_PROJECT, scope.everything, list(scope.projects), project)
    return [EntitlementRow(**dict(row)) for row in rows]


def _group(row: Row, given: Sequence[Row]) -> GroupRow:
    values: dict[str, Any] = dict(row)
    healthy, accounts = values.pop("healthy"), values.pop("accounts")
    nothing: list[int | None] = [None, None, 0]
    found = tuple(
        AccountRow(
            resource=name,
            quota=account[0],
            target=account[1],
            reserved=account[2] or 0,
            healthy=int(healthy.get(name, 0)),
        )
        for name in sorted(healthy.keys() | accounts.keys())
        for account in [accounts.get(name, nothing)]
    )
    fields = ("project_group", "kind", "expires_at", "granted_by", "granted_at")
    grants = tuple(GrantRow(**{name: g[name] for name in fields}) for g in given)
    return GroupRow(order=values.pop("queue_order"), accounts=found, grants=grants, **values)
