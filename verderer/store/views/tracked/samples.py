"""Histories of metrics; a sample that was sent twice is given once."""

from __future__ import annotations

from collections.abc import Sequence

from verderer.core.model.actor import Scope
from verderer.core.tracking.samples import Point
from verderer.store.database import Tx

_POINTS = """
      FROM tracking_runs AS r
      JOIN tracking_series AS s ON s.tracked_id = r.id
      JOIN tracking_points AS c ON c.series_id = s.id,
           unnest(c.steps, c.times_ms, c.samples) AS p (step, at_ms, value)
     WHERE r.uid = ANY($1::text[]::uuid[]) AND s.key = $2
       AND ($3 OR r.project_id = ANY($4::int[]))
"""
_HISTORY = f"""
    SELECT DISTINCT p.step, p.at_ms, p.value {_POINTS}
     ORDER BY p.at_ms, p.step, p.value OFFSET $5 LIMIT $6
"""
_BULK = f"""
    SELECT DISTINCT replace(r.uid::text, '-', '') AS uid, p.step, p.at_ms, p.value {_POINTS}
     ORDER BY uid, p.at_ms, p.step, p.value LIMIT $5
"""
# The first of every bucket of equally many samples, and the very last.
_SPREAD = f"""
    WITH once AS (
        SELECT DISTINCT replace(r.uid::text, '-', '') AS uid, p.step, p.at_ms, p.value {_POINTS}
           AND ($5::bigint IS NULL OR p.step BETWEEN $5 AND $6::bigint)),
    placed AS (
        SELECT *, row_number() OVER (PARTITION BY uid ORDER BY step, at_ms, value) AS place,
               count(*) OVER (PARTITION BY uid) AS n
          FROM once)
    SELECT uid, step, at_ms, value FROM placed
     WHERE place = n
        OR ($7::bigint > 1 AND (place = 1
            OR (place - 1) * ($7 - 1) / n <> (place - 2) * ($7 - 1) / n))
     ORDER BY uid, step, at_ms, value
"""  # noqa: S608 - our own pieces


async def history(
    tx: Tx, scope: Scope, uid: str, key: str, *, offset: int, limit: int
) -> list[Point]:
    """At most `limit` of one metric's samples by time, step and value, behind `offset` others."""
    rows = await tx.fetch(
        _HISTORY, [uid], key, scope.everything, list(scope.projects), offset, limit
    )
    return [Point(*row.values()) for row in rows]


async def histories(
    tx: Tx, scope: Scope, uids: Sequence[str], key: str, *, limit: int
) -> list[tuple[str, Point]]:
    """The same metric of several runs, by run; at most `limit` samples in all."""
    rows = await tx.fetch(_BULK, list(uids), key, scope.everything, list(scope.projects), limit)
    return [(row["uid"], Point(row["step"], row["at_ms"], row["value"])) for row in rows]


async def spread(
    tx: Tx,
    scope: Scope,
    uids: Sequence[str],
    key: str,
    *,
    steps: tuple[int, int] | None,
    limit: int,
) -> list[tuple[str, Point]]:
    """At most `limit` samples of each run, evenly from the first to the last, by run and step.

    `steps` are the lowest and the highest that count. With a limit of 1 it is the last sample.
    """
    low, high = steps or (None, None)
    rows = await tx.fetch(
        _SPREAD, list(uids), key, scope.everything, list(scope.projects), low, high, limit
    )
    return [(row["uid"], Point(row["step"], row["at_ms"], row["value"])) for row in rows]
