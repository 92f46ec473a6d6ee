"""Tracked runs, their parameters and their tags."""

from __future__ import annotations

from dataclasses import dataclass

from verderer.core.tracking.entities import Pairs, Status, TrackedRun
from verderer.store.database import Row, Tx

COLUMNS = """
    r.id, replace(r.uid::text, '-', '') AS uid, r.experiment_id AS experiment,
    r.project_id AS project, r.name, r.user_name AS user, r.status::text AS status, r.start_ms,
    r.end_ms, r.deleted_at IS NOT NULL AS deleted, r.run_id AS run, r.step_idx AS step, r.attempt
"""

_ADD = f"""
    INSERT INTO tracking_runs AS r
        (uid, experiment_id, project_id, name, user_name, start_ms, run_id, step_idx, attempt)
    VALUES ($1::uuid, $2, $3, $4, $5, $6, $7, $8, $9)
 RETURNING {COLUMNS}
"""  # noqa: S608 - our own list of columns
_LOCK = f"SELECT {COLUMNS} FROM tracking_runs AS r WHERE r.uid = $1::uuid FOR NO KEY UPDATE"  # noqa: S608
_FIND = f"SELECT {COLUMNS} FROM tracking_runs AS r WHERE r.uid = $1::uuid"  # noqa: S608
_UPDATE = """
    UPDATE tracking_runs
       SET status = coalesce($2::text::tracking_status, status), end_ms = coalesce($3, end_ms),
           name = coalesce($4, name)
     WHERE id = $1
"""
_DELETE = "UPDATE tracking_runs SET deleted_at = now() WHERE id = $1"
_RESTORE = "UPDATE tracking_runs SET deleted_at = NULL WHERE id = $1"
_SET_TAGS = """
    INSERT INTO tracking_tags (tracked_id, key, value)
    SELECT $1, key, value FROM unnest($2::text[], $3::text[]) AS u (key, value)
        ON CONFLICT (tracked_id, key) DO UPDATE SET value = excluded.value
"""
_TAG = "SELECT value FROM tracking_tags WHERE tracked_id = $1 AND key = $2"
_REMOVE_TAG = "DELETE FROM tracking_tags WHERE tracked_id = $1 AND key = $2"
_ADD_PARAMS = """
    INSERT INTO tracking_params (tracked_id, key, value)
    SELECT $1, key, value FROM unnest($2::text[], $3::text[]) AS u (key, value)
        ON CONFLICT (tracked_id, key) DO NOTHING
"""
_OTHER_PARAMS = """
    SELECT p.key, p.value AS old, u.value AS new
      FROM unnest($2::text[], $3::text[]) AS u (key, value)
      JOIN tracking_params AS p ON p.tracked_id = $1 AND p.key = u.key AND p.value <> u.value
     ORDER BY p.key
"""
_PIPELINE = """
    SELECT r.name, s.name AS step
      FROM runs AS r LEFT JOIN steps AS s ON s.run_id = r.id AND s.idx = $2
     WHERE r.id = $1
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class NewRun:
    """A tracked run that is to be."""

    uid: str
    experiment: int
    project: int
    name: str
    user: str
    start_ms: int
    run: int | None = None
    step: int | None = None
    attempt: int | None = None


async def add(tx: Tx, new: NewRun) -> TrackedRun:
    """Insert a run that has just begun."""
    row = await tx.fetchrow(
        _ADD,
        new.uid,
        new.experiment,
        new.project,
        new.name,
        new.user,
        new.start_ms,
        new.run,
        new.step,
        new.attempt,
    )
    if row is None:
        raise AssertionError("INSERT … RETURNING gave no row")
    return tracked(row)


async def lock(tx: Tx, uid: str) -> TrackedRun | None:
    """The run, which nobody else changes until the end of the transaction; None: no such run."""
    row = await tx.fetchrow(_LOCK, uid)
    return tracked(row) if row else None


async def find(tx: Tx, uid: str) -> TrackedRun | None:
    """The run as it is now, without holding it; None: no such run."""
    row = await tx.fetchrow(_FIND, uid)
    return tracked(row) if row else None


async def update(
    tx: Tx, tracked_id: int, *, status: Status | None, end_ms: int | None, name: str | None
) -> None:
    """Change what is given."""
    await tx.execute(_UPDATE, tracked_id, status, end_ms, name)


async def set_deleted(tx: Tx, tracked_id: int, *, deleted: bool) -> None:
    """Delete or restore it; what it reported stays."""
    await tx.execute(_DELETE if deleted else _RESTORE, tracked_id)


async def set_tags(tx: Tx, tracked_id: int, tags: Pairs) -> None:
    """Write tags over what was there; each key at most once."""
    if tags:
        keys, values = zip(*sorted(tags), strict=True)
        await tx.execute(_SET_TAGS, tracked_id, keys, values)


async def tag(tx: Tx, tracked_id: int, key: str) -> str | None:
    """The value of one tag, or None."""
    value: str | None = await tx.fetchval(_TAG, tracked_id, key)
    return value


async def remove_tag(tx: Tx, tracked_id: int, key: str) -> bool:
    """Remove a tag; return whether it was there."""
    return await tx.execute(_REMOVE_TAG, tracked_id, key) != "DELETE 0"


async def add_params(tx: Tx, tracked_id: int, params: Pairs) -> list[tuple[str, str, str]]:
    """Write parameters that are not there yet; each key at most once.

    Returns those that have another value already: key, old value, new value. The caller refuses
    the request then, since a parameter never changes.
    """
    if not params:
        return []
    keys, values = zip(*sorted(params), strict=True)
    await tx.execute(_ADD_PARAMS, tracked_id, keys, values)
    rows = await tx.fetch(_OTHER_PARAMS, tracked_id, keys, values)
    return [(row["key"], row["old"], row["new"]) for row in rows]


async def pipeline_of(tx: Tx, run: int, step: int) -> tuple[str, str]:
    """Names of the pipeline and of the step, empty when they are gone."""
    row = await tx.fetchrow(_PIPELINE, run, step)
    return (row["name"], row["step"] or "") if row else ("", "")


def tracked(row: Row) -> TrackedRun:
    """Read a row of `COLUMNS`."""
    return TrackedRun(**{**row, "status": Status(row["status"])})
