"""The queue: steps that wait for a place, read incrementally by whoever places them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from verderer.store.database import Tx, columns

_ADD = """
    INSERT INTO queue (step_id, run_id, project_id, shape_id, not_before, ready_at)
    SELECT step_id, run_id, project_id, shape_id,
           CASE WHEN wait > interval '0' THEN now() + wait END, now()
      FROM unnest($1::bigint[], $2::bigint[], $3::int[], $4::int[], $5::interval[])
        AS u (step_id, run_id, project_id, shape_id, wait)
        ON CONFLICT DO NOTHING
"""
_COPIED = ("step_id", "run_id", "project_id", "shape_id")
_DROP_RUN = "DELETE FROM queue WHERE run_id = $1"
_SINCE = """
    SELECT step_id, run_id, project_id, shape_id, priority,
           extract(epoch FROM not_before - now())::float8 AS due_in_s, ready_at, xid
      FROM queue WHERE xid >= $1 ORDER BY xid, step_id
"""
_STILL = "SELECT step_id FROM queue WHERE step_id = ANY($1)"
_HORIZON = "SELECT pg_snapshot_xmin(pg_current_snapshot()) AS horizon"


@dataclass(frozen=True, slots=True)
class Waiting:
    """A step that is about to wait for a place."""

    step: int
    run: int
    project: int
    shape: int
    wait_s: int = 0


async def add(tx: Tx, waiting: Sequence[Waiting]) -> None:
    """Put steps into the queue, some not before a while has passed."""
    rows = [(w.step, w.run, w.project, w.shape, timedelta(seconds=w.wait_s)) for w in waiting]
    if rows:
        await tx.execute(_ADD, *columns(rows, 5))


async def add_new(tx: Tx, rows: Sequence[tuple[int, int, int, int]]) -> None:
    """Put steps that were never queued before: step, run, project, shape."""
    if rows:
        await tx.copy_records_to_table("queue", records=rows, columns=_COPIED)


async def drop_run(tx: Tx, run: int) -> None:
    """Nothing of this run waits for a place any more."""
    await tx.execute(_DROP_RUN, run)


async def still_there(tx: Tx, steps: Sequence[int]) -> list[int]:
    """Those of `steps` that wait in the queue."""
    return [row["step_id"] for row in await tx.fetch(_STILL, steps)]


@dataclass(frozen=True, slots=True)
class Entry:
    """A queued step as its reader sees it."""

    step: int
    run: int
    project: int
    shape: int
    priority: int
    due_in_s: float | None
    """Seconds, by the database's clock, until it may be placed; None: at once."""
    ready_at: datetime
    xid: int


async def since(tx: Tx, xid: int) -> tuple[list[Entry], int]:
    """Rows written by transaction `xid` or later, and where to ask from next time.

    Every transaction below the returned horizon had ended when the rows were read, so nothing is
    ever missed; rows at or above it will be given again.
    """
    horizon: int = await tx.fetchval(_HORIZON)
    rows = await tx.fetch(_SINCE, xid)
    return [Entry(*row.values()) for row in rows], horizon
