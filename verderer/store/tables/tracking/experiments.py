"""Experiments and their tags."""

from __future__ import annotations

import asyncpg

from verderer.core.errors import Conflict
from verderer.core.tracking.entities import Pairs
from verderer.store.database import Tx

_ADD = """
    INSERT INTO tracking_experiments (id, project_id, name, created_ms, updated_ms)
    VALUES ($1, $2, $3, $4, $4)
"""
_ADD_ONCE = """
    INSERT INTO tracking_experiments (id, project_id, name, created_ms, updated_ms)
    VALUES ($1, $2, $3, $4, $4)
        ON CONFLICT (project_id, name) DO NOTHING
 RETURNING id
"""
_RENAME = "UPDATE tracking_experiments SET name = $2, updated_ms = $3 WHERE id = $1"
_DELETE = """
    UPDATE tracking_experiments SET deleted_at = now(), updated_ms = $2
     WHERE id = $1 AND deleted_at IS NULL
"""
_RESTORE = """
    UPDATE tracking_experiments SET deleted_at = NULL, updated_ms = $2
     WHERE id = $1 AND deleted_at IS NOT NULL
"""
_DELETE_RUNS = """
    UPDATE tracking_runs SET deleted_at = now() WHERE experiment_id = $1 AND deleted_at IS NULL
"""
_RESTORE_RUNS = """
    UPDATE tracking_runs SET deleted_at = NULL WHERE experiment_id = $1 AND deleted_at IS NOT NULL
"""
_SET_TAGS = """
    INSERT INTO tracking_experiment_tags (experiment_id, key, value)
    SELECT $1, key, value FROM unnest($2::text[], $3::text[]) AS u (key, value)
        ON CONFLICT (experiment_id, key) DO UPDATE SET value = excluded.value
"""
_REMOVE_TAG = "DELETE FROM tracking_experiment_tags WHERE experiment_id = $1 AND key = $2"


async def add(tx: Tx, *, id: int, project: int, name: str, now_ms: int) -> None:  # noqa: A002
    """Insert an experiment.

    Raises:
        Conflict: the project has one of this name, perhaps a deleted one (`already_exists`).
    """
    try:
        await tx.execute(_ADD, id, project, name, now_ms)
    except asyncpg.UniqueViolationError as e:
        raise taken(name) from e


async def add_once(tx: Tx, *, id: int, project: int, name: str, now_ms: int) -> bool:  # noqa: A002
    """Insert an experiment unless the project has one of this name; return whether it was new."""
    return await tx.fetchval(_ADD_ONCE, id, project, name, now_ms) is not None


async def rename(tx: Tx, experiment: int, name: str, *, now_ms: int) -> None:
    """Give it another name.

    Raises:
        Conflict: the project has one of this name (`already_exists`).
    """
    try:
        await tx.execute(_RENAME, experiment, name, now_ms)
    except asyncpg.UniqueViolationError as e:
        raise taken(name) from e


async def set_deleted(tx: Tx, experiment: int, *, deleted: bool, now_ms: int) -> bool:
    """Delete or restore it with all its runs; return whether that changed anything."""
    done = await tx.execute(_DELETE if deleted else _RESTORE, experiment, now_ms)
    if done == "UPDATE 0":
        return False
    await tx.execute(_DELETE_RUNS if deleted else _RESTORE_RUNS, experiment)
    return True


async def set_tags(tx: Tx, experiment: int, tags: Pairs) -> None:
    """Write tags over what was there; each key at most once."""
    if tags:
        keys, values = zip(*tags, strict=True)
        await tx.execute(_SET_TAGS, experiment, keys, values)


async def remove_tag(tx: Tx, experiment: int, key: str) -> bool:
    """Remove a tag; return whether it was there."""
    return await tx.execute(_REMOVE_TAG, experiment, key) != "DELETE 0"


def taken(name: str) -> Conflict:
    """The refusal of a name that the project has given already."""
    return Conflict(
        f"Experiment(name={name}) already exists",
        code="already_exists",
        hint="A deleted experiment keeps its name: restore it or choose another.",
    )
