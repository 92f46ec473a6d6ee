"""Project groups, for pages and lists."""

from __future__ import annotations

from verderer.core.errors import NotFound
from verderer.core.model.actor import Role, Scope
from verderer.core.model.people import Member, ProjectGroup
from verderer.store.database import Tx

# A reader who does not see everything sees the groups of their projects, and of these groups
# their own projects.
_LIST = """
    SELECT g.name, g.title, g.created_at,
           ARRAY(SELECT p.name FROM projects AS p
                  WHERE p.group_id = g.id AND ($1 OR p.id = ANY($2::int[]))
                  ORDER BY p.name LIMIT 1000) AS projects
      FROM project_groups AS g
     WHERE ($1 OR EXISTS (SELECT FROM projects AS p
                           WHERE p.group_id = g.id AND p.id = ANY($2::int[])))
       AND g.name > $3 AND ($4::text IS NULL OR g.name = $4)
     ORDER BY g.name LIMIT $5
"""
_MEMBERS = """
    SELECT u.id AS user, u.email, u.name, m.role::text AS role, u.active
      FROM project_groups AS g
      JOIN project_group_members AS m ON m.project_group_id = g.id
      JOIN users AS u ON u.id = m.user_id
     WHERE g.name = $3 AND u.email > $4
       AND ($1 OR EXISTS (SELECT FROM projects AS p
                           WHERE p.group_id = g.id AND p.id = ANY($2::int[])))
     ORDER BY u.email LIMIT $5
"""


async def visible(
    tx: Tx, scope: Scope, *, name: str | None = None, after: str = "", limit: int = 50
) -> list[ProjectGroup]:
    """Groups by name, beginning behind the name `after`; with `name` that one alone."""
    rows = await tx.fetch(_LIST, scope.everything, list(scope.projects), after, name, limit)
    return [ProjectGroup(**{**row, "projects": tuple(row["projects"])}) for row in rows]


async def by_name(tx: Tx, scope: Scope, name: str) -> ProjectGroup:
    """One of them.

    Raises:
        NotFound: there is none, or it is not the reader's to know about.
    """
    found = await visible(tx, scope, name=name, limit=1)
    if not found:
        raise NotFound("no such project group, or none of its projects is yours")
    return found[0]


async def members(
    tx: Tx, scope: Scope, name: str, *, after: str = "", limit: int = 50
) -> list[Member]:
    """Its members by e-mail address, beginning behind the address `after`."""
    rows = await tx.fetch(_MEMBERS, scope.everything, list(scope.projects), name, after, limit)
    return [Member(**{**row, "role": Role(row["role"])}) for row in rows]
