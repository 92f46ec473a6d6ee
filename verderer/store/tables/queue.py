"""The queue: steps that wait for a place, read incrementally by whoever places them."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence
from datetime import timedelta
from typing import NamedTuple

import msgspec

from verderer.store.database import Tx, columns

_ADD = """
    INSERT INTO queue
        (step_id, run_id, project_id, shape_id, resource_group_id, priority, not_before, ready_at)
    SELECT step_id, run_id, project_id, shape_id, resource_group_id, priority,
           CASE WHEN wait > interval '0' THEN now() + wait END, now()
      FROM unnest($1::bigint[], $2::bigint[], $3::int[], $4::int[], $5::int[],
                  $6::smallint[], $7::interval[])
        AS u (step_id, run_id, project_id, shape_id, resource_group_id, priority, wait)
        ON CONFLICT DO NOTHING
"""
_COPIED = ("step_id", "run_id", "project_id", "shape_id", "resource_group_id", "priority")
_DROP_RUN = "DELETE FROM queue WHERE run_id = $1"
# Rows of one transaction come in the order in which it wrote them.
_WHOLE = """
    SELECT step_id, project_id, shape_id, resource_group_id, priority,
           extract(epoch FROM not_before - now())::float8 AS due_in_s,
           extract(epoch FROM ready_at)::float8 AS ready_s,
           CASE WHEN q.xid >= $1 THEN q.xid::text::bigint END AS known_xid
      FROM queue AS q ORDER BY q.xid
"""
# With the horizon, seen at the same moment, in one trip; a row without a step when none is new.
_NEWS = """
    SELECT q.*, h.horizon
      FROM (SELECT pg_snapshot_xmin(pg_current_snapshot()) AS horizon) AS h
      LEFT JOIN LATERAL (
            SELECT step_id, project_id, shape_id, resource_group_id, priority,
                   extract(epoch FROM not_before - now())::float8 AS due_in_s,
                   extract(epoch FROM ready_at)::float8 AS ready_s,
                   xid::text::bigint AS known_xid
              FROM queue WHERE xid >= $1 ORDER BY queue.xid) AS q ON true
"""
_PAGE = 20_000
_STILL = "SELECT step_id FROM queue WHERE step_id = ANY($1)"
_HORIZON = "SELECT pg_snapshot_xmin(pg_current_snapshot()) AS horizon"


class Waiting(msgspec.Struct, frozen=True):
    """A step that is about to wait for a place."""

    step: int
    run: int
    project: int
    shape: int
    group: int
    """The resource group's id."""
    priority: int = 0
    wait_s: int = 0


async def add(tx: Tx, waiting: Sequence[Waiting]) -> None:
    """Put steps into the queue, some not before a while has passed."""
    rows = [
        (w.step, w.run, w.project, w.shape, w.group, w.priority, timedelta(seconds=w.wait_s))
        for w in waiting
    ]
    if rows:
        await tx.execute(_ADD, *columns(rows, 7))


async def add_new(tx: Tx, rows: Sequence[tuple[int, int, int, int, int, int]]) -> None:
    """Put steps that were never queued before: step, run, project, shape, group, priority."""
    if rows:
        await tx.copy_records_to_table("queue", records=rows, columns=_COPIED)


async def drop_run(tx: Tx, run: int) -> None:
    """Nothing of this run waits for a place any more."""
    await tx.execute(_DROP_RUN, run)


async def still_there(tx: Tx, steps: Sequence[int]) -> list[int]:
    """Those of `steps` that wait in the queue."""
    return [row["step_id"] for row in await tx.fetch(_STILL, steps)]


class Entry(NamedTuple):
    """A queued step as its reader sees it."""

    step: int
    project: int
    shape: int
    group: int
    priority: int
    due_in_s: float | None
    """Seconds, by the database's clock, until it may be placed; None: at once."""
    ready_s: float
    """Unix time at which it became ready."""
    xid: int | None
    """The transaction that wrote it; None where nobody will have to know it again."""


async def horizon(tx: Tx) -> int:
    """Every transaction below had ended when this was asked.

    Rows below it are there to be seen from now on; those at or above it are to be asked for again.
    """
    found: int = await tx.fetchval(_HORIZON)
    return found


async def news(tx: Tx, xid: int) -> tuple[int, Sequence[Entry]]:
    """The horizon, and the rows written by transaction `xid` or later, oldest transaction first.

    Each row is as a tuple of the fields of `Entry`.
    """
    rows = await tx.fetch(_NEWS, xid)
    found: int = rows[0]["horizon"]
    if rows[0]["step_id"] is None:
        return found, []
    return found, [Entry(*row[:-1]) for row in map(tuple, rows)]


async def whole(tx: Tx, *, known_from: int) -> AsyncGenerator[Sequence[Entry], None]:
    """All of the queue in pages, oldest transaction first; never all of it in memory at once.

    Each row is as a tuple of the fields of `Entry`; transactions below `known_from` are left out
    of it. Close the iterator, or the transaction that reads it stays open.
    """
    async with tx.transaction(readonly=True):
        cursor = await tx.cursor(_WHOLE, known_from)
        while page := await cursor.fetch(_PAGE):
            yield page
