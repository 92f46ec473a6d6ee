"""Grants: which resource groups the projects of a project group may use."""

from __future__ import annotations

from collections import defaultdict
from datetime import datetime

from verderer.core.governance.model import GrantKind
from verderer.core.governance.routing import Grant
from verderer.store.database import Row, Tx

_ALL = """
    SELECT p.id AS project, g.id, t.kind::text, g.name, g.labels,
           extract(epoch FROM t.expires_at)::float8 AS until
      FROM projects AS p
      LEFT JOIN grants AS t ON t.project_group_id = p.group_id
      LEFT JOIN resource_groups AS g ON g.id = t.resource_group_id AND g.retired_at IS NULL
"""
_DEFAULT_AWAY = """
    UPDATE grants SET kind = 'optional'
     WHERE project_group_id = $1 AND kind = 'default' AND resource_group_id <> $2
"""
_PUT = """
    INSERT INTO grants AS t (project_group_id, resource_group_id, kind, expires_at, granted_by)
    VALUES ($1, $2, $3::grant_kind, $4, $5)
        ON CONFLICT (project_group_id, resource_group_id) DO UPDATE
       SET kind = excluded.kind, expires_at = excluded.expires_at,
           granted_by = excluded.granted_by, granted_at = now()
     WHERE (t.kind, t.expires_at) IS DISTINCT FROM (excluded.kind, excluded.expires_at)
"""
_TAKE = "DELETE FROM grants WHERE project_group_id = $1 AND resource_group_id = $2"
_PROJECT_GROUP = "SELECT id FROM project_groups WHERE name = $1 FOR KEY SHARE"
_OF_PROJECT = "SELECT group_id FROM projects WHERE id = $1"
_EXPIRE = """
    DELETE FROM grants AS t USING project_groups AS p, resource_groups AS g
     WHERE t.expires_at <= now() AND p.id = t.project_group_id AND g.id = t.resource_group_id
 RETURNING p.name AS project_group, g.name AS resource_group
"""


async def all_grants(tx: Tx) -> dict[int, tuple[Grant, ...]]:
    """What every project may use, expired grants included, by project id."""
    found: defaultdict[int, list[Grant]] = defaultdict(list)
    for row in await tx.fetch(_ALL):
        given = found[row["project"]]
        if row["id"] is None:
            continue
        given.append(
            Grant(
                group=row["id"],
                name=row["name"],
                kind=GrantKind(row["kind"]),
                labels=row["labels"],
                until=row["until"],
            )
        )
    return {project: tuple(grants) for project, grants in found.items()}


async def project_group_id(tx: Tx, name: str) -> int | None:
    """A project group's id; it stays until the transaction ends."""
    found: int | None = await tx.fetchval(_PROJECT_GROUP, name)
    return found


async def group_of_project(tx: Tx, project: int) -> int | None:
    """The id of the project group that a project belongs to."""
    found: int | None = await tx.fetchval(_OF_PROJECT, project)
    return found


async def put(
    tx: Tx, project_group: int, group: int, *, kind: GrantKind, until: datetime | None, by: str
) -> bool:
    """Grant; whether that changed anything. What was the default becomes optional."""
    if kind is GrantKind.DEFAULT:
        await tx.execute(_DEFAULT_AWAY, project_group, group)
    return await tx.execute(_PUT, project_group, group, kind.value, until, by) == "INSERT 0 1"


async def take(tx: Tx, project_group: int, group: int) -> bool:
    """Take a grant back; whether there was one."""
    return await tx.execute(_TAKE, project_group, group) == "DELETE 1"


async def expire(tx: Tx) -> list[Row]:
    """Delete what is over and say what that was."""
    return list(await tx.fetch(_EXPIRE))
