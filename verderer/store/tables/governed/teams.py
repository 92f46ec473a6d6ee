"""Project groups: teams, who is in them, and which projects are theirs."""

from __future__ import annotations

import asyncpg

from verderer.core.errors import Conflict
from verderer.core.model.actor import Role
from verderer.store.database import Tx

_ADD = "INSERT INTO project_groups (name, title) VALUES ($1, $2)"
_LOCK = "SELECT id FROM project_groups WHERE name = $1 FOR NO KEY UPDATE"
_PROJECTS = "SELECT count(*) FROM projects WHERE group_id = $1"
_DELETE = "DELETE FROM project_groups WHERE id = $1"
_MOVE = """
    WITH was AS (SELECT id, group_id FROM projects WHERE name = $1 FOR NO KEY UPDATE)
    UPDATE projects AS p SET group_id = $2
      FROM was WHERE p.id = was.id AND was.group_id <> $2
 RETURNING p.id
"""
_PUT_MEMBER = """
    INSERT INTO project_group_members AS m (project_group_id, user_id, role)
    VALUES ($1, $2, $3::role)
        ON CONFLICT (project_group_id, user_id) DO UPDATE SET role = excluded.role
     WHERE m.role <> excluded.role
"""
_REMOVE_MEMBER = "DELETE FROM project_group_members WHERE project_group_id = $1 AND user_id = $2"


async def add(tx: Tx, name: str, title: str) -> None:
    """Insert a group.

    Raises:
        Conflict: the name is taken.
    """
    try:
        await tx.execute(_ADD, name, title)
    except asyncpg.UniqueViolationError as e:
        raise Conflict(f"there is a project group {name} already") from e


async def lock(tx: Tx, name: str) -> int | None:
    """Hold a group; its id."""
    found: int | None = await tx.fetchval(_LOCK, name)
    return found


async def projects(tx: Tx, group: int) -> int:
    """How many projects belong to it."""
    found: int = await tx.fetchval(_PROJECTS, group)
    return found


async def delete(tx: Tx, group: int) -> None:
    """Delete a group that has no project; its grants and members go with it."""
    await tx.execute(_DELETE, group)


async def move(tx: Tx, project: str, group: int) -> int | None:
    """Give a project to a group; its id, or None when it was there or is none."""
    found: int | None = await tx.fetchval(_MOVE, project, group)
    return found


async def put_member(tx: Tx, group: int, user: int, role: Role) -> bool:
    """Give `user` the role; whether that changed anything."""
    return await tx.execute(_PUT_MEMBER, group, user, role) == "INSERT 0 1"


async def remove_member(tx: Tx, group: int, user: int) -> bool:
    """Whether `user` was in it."""
    return await tx.execute(_REMOVE_MEMBER, group, user) == "DELETE 1"
