"""Projects and who is in them."""

from __future__ import annotations

import asyncpg

from verderer.core.errors import Conflict, NotFound
from verderer.core.model.actor import Role
from verderer.core.model.people import Project
from verderer.store.database import Tx

_ADD = """
    INSERT INTO projects AS p (name, title, group_id)
    SELECT $1, $2, id FROM project_groups WHERE name = $3
 RETURNING p.id, p.name, p.title, $3 AS group, p.created_at
"""
_LOCK = "SELECT id FROM projects WHERE id = $1 FOR NO KEY UPDATE"
_PUT_MEMBER = """
    INSERT INTO project_members AS m (project_id, user_id, role)
    VALUES ($1, $2, $3::role)
        ON CONFLICT (project_id, user_id) DO UPDATE SET role = excluded.role
     WHERE m.role <> excluded.role
"""
_REMOVE_MEMBER = "DELETE FROM project_members WHERE project_id = $1 AND user_id = $2"
_ONLY_ADMIN = """
    SELECT EXISTS (SELECT FROM project_members
                    WHERE project_id = $1 AND user_id = $2 AND role = 'admin')
       AND NOT EXISTS (SELECT FROM project_members AS m
                         JOIN users AS u ON u.id = m.user_id AND u.active
                        WHERE m.project_id = $1 AND m.role = 'admin' AND m.user_id <> $2)
"""


async def add(tx: Tx, *, name: str, title: str, group: str = "default") -> Project:
    """Insert a project.

    Raises:
        NotFound: there is no project group of that name.
        Conflict: the name is taken.
    """
    try:
        row = await tx.fetchrow(_ADD, name, title, group)
    except asyncpg.UniqueViolationError as e:
        raise Conflict(f"there is a project {name} already") from e
    if row is None:
        raise NotFound(f"there is no project group {group}")
    return Project(**row)


async def lock(tx: Tx, project: int) -> None:
    """Until the end of the transaction nobody else changes its members.

    Raises:
        NotFound: it is gone.
    """
    if await tx.fetchval(_LOCK, project) is None:
        raise NotFound("no such project")


async def put_member(tx: Tx, project: int, user: int, role: Role) -> bool:
    """Give `user` the role; return whether that changed anything."""
    return await tx.execute(_PUT_MEMBER, project, user, role) == "INSERT 0 1"


async def remove_member(tx: Tx, project: int, user: int) -> bool:
    """Return whether `user` was in it."""
    return await tx.execute(_REMOVE_MEMBER, project, user) == "DELETE 1"


async def is_only_admin(tx: Tx, project: int, user: int) -> bool:
    """Whether `user` is an admin of the project and no other active user is."""
    return bool(await tx.fetchval(_ONLY_ADMIN, project, user))
