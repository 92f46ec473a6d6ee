"""Projects, for pages and lists."""

from __future__ import annotations

from verderer.core.errors import NotFound
from verderer.core.model.actor import Role, Scope
from verderer.core.model.people import Member, Project
from verderer.store.database import Tx

_LIST = """
    SELECT p.id, p.name, p.title, g.name AS group, p.created_at
      FROM projects AS p JOIN project_groups AS g ON g.id = p.group_id
     WHERE ($1 OR p.id = ANY($2::int[])) AND p.name > $3
     ORDER BY p.name LIMIT $4
"""
_BY_NAME = """
    SELECT p.id, p.name, p.title, g.name AS group, p.created_at
      FROM projects AS p JOIN project_groups AS g ON g.id = p.group_id
     WHERE p.name = $3 AND ($1 OR p.id = ANY($2::int[]))
"""
_NAMES = "SELECT id, name FROM projects WHERE id = ANY($3::int[]) AND ($1 OR id = ANY($2::int[]))"
_MEMBERS = """
    SELECT u.id AS user, u.email, u.name, m.role::text AS role, u.active
      FROM project_members AS m
      JOIN users AS u ON u.id = m.user_id
     WHERE m.project_id = $1 AND u.email > $2
     ORDER BY u.email LIMIT $3
"""


async def visible(tx: Tx, scope: Scope, *, after: str = "", limit: int = 50) -> list[Project]:
    """Those that the reader may see, by name, beginning behind the name `after`."""
    rows = await tx.fetch(_LIST, scope.everything, list(scope.projects), after, limit)
    return [Project(**row) for row in rows]


async def by_name(tx: Tx, scope: Scope, name: str) -> Project:
    """One of them.

    Raises:
        NotFound: there is none, or it is not the reader's to know about.
    """
    row = await tx.fetchrow(_BY_NAME, scope.everything, list(scope.projects), name)
    if row is None:
        raise NotFound("no such project, or you are not a member of it")
    return Project(**row)


async def names(tx: Tx, scope: Scope, projects: list[int]) -> dict[int, str]:
    """Names by id, of those that exist and that the reader may see."""
    rows = await tx.fetch(_NAMES, scope.everything, list(scope.projects), projects)
    return {row["id"]: row["name"] for row in rows}


async def members(
    tx: Tx, scope: Scope, project: int, *, after: str = "", limit: int = 50
) -> list[Member]:
    """Its members by e-mail address, beginning behind the address `after`."""
    if not scope.sees(project):
        return []
    rows = await tx.fetch(_MEMBERS, project, after, limit)
    return [Member(**{**row, "role": Role(row["role"])}) for row in rows]
