"""What training code reported, as pages show it: experiments, tracked runs, curves, parameters."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass

from verderer.core.model.actor import Scope
from verderer.core.tracking.entities import Pairs, Status
from verderer.core.tracking.samples import Point
from verderer.store.database import Row, Tx

MAX_CURVES = 500
"""Of one run's page; the first by metric, step and attempt."""

_EXPERIMENTS = """
    SELECT e.id, p.name AS project, e.name, e.created_ms, e.updated_ms,
           (SELECT count(*) FROM tracking_runs AS r
             WHERE r.experiment_id = e.id AND r.deleted_at IS NULL) AS runs,
           (SELECT max(r.start_ms) FROM tracking_runs AS r
             WHERE r.experiment_id = e.id AND r.deleted_at IS NULL) AS newest_ms
      FROM tracking_experiments AS e JOIN projects AS p ON p.id = e.project_id
     WHERE ($1 OR e.project_id = ANY($2::int[])) AND ($3::text IS NULL OR p.name = $3)
       AND e.deleted_at IS NULL AND (p.name, e.name, e.id) > ($4::text, $5::text, $6::bigint)
     ORDER BY p.name, e.name, e.id LIMIT $7
"""
_RUN_COLUMNS = """
    r.id, replace(r.uid::text, '-', '') AS uid, r.experiment_id, e.name AS experiment,
    p.name AS project, r.name, r.user_name AS user, r.status::text AS status, r.start_ms,
    r.end_ms, r.run_id, r.step_idx, s.name AS step, r.attempt
"""
_RUN_FROM = """
      FROM tracking_runs AS r
      JOIN tracking_experiments AS e ON e.id = r.experiment_id
      JOIN projects AS p ON p.id = r.project_id
      LEFT JOIN steps AS s ON s.run_id = r.run_id AND s.idx = r.step_idx
     WHERE ($1 OR r.project_id = ANY($2::int[])) AND r.deleted_at IS NULL
"""
_RUNS = f"""
    SELECT {_RUN_COLUMNS} {_RUN_FROM}
       AND ($3::text IS NULL OR p.name = $3) AND ($4::bigint IS NULL OR r.experiment_id = $4)
       AND r.id < $5
     ORDER BY r.id DESC LIMIT $6
"""
_RUNS_OF_RUN = f"""
    SELECT {_RUN_COLUMNS} {_RUN_FROM} AND r.run_id = $3
     ORDER BY r.step_idx, r.attempt, r.id
"""
_LATEST = """
    SELECT tracked_id, key, value FROM tracking_series
     WHERE tracked_id = ANY($1::bigint[]) ORDER BY key
"""
_PARAMS = """
    SELECT tracked_id, key, value FROM tracking_params
     WHERE tracked_id = ANY($1::bigint[]) ORDER BY key
"""
# The ends of every curve, and of each bucket between them the lowest and the highest sample: an
# array compares by its first element. A bucket of nothing but NaN keeps one.
_CURVES = """
    WITH wanted AS (
        SELECT s.id, s.tracked_id, s.key
          FROM tracking_series AS s JOIN tracking_runs AS r ON r.id = s.tracked_id
         WHERE s.tracked_id = ANY($1::bigint[])
         ORDER BY s.key, r.step_idx, r.attempt, s.tracked_id LIMIT $2),
    once AS (
        SELECT DISTINCT w.id, p.step, p.at_ms, p.value
          FROM wanted AS w JOIN tracking_points AS c ON c.series_id = w.id,
               unnest(c.steps, c.times_ms, c.samples) AS p (step, at_ms, value)),
    placed AS (
        SELECT *, row_number() OVER (PARTITION BY id ORDER BY step, at_ms, value) AS place,
               count(*) OVER (PARTITION BY id) AS n
          FROM once),
    bucketed AS (
        SELECT id, n, CASE WHEN place = 1 THEN -1 WHEN place = n THEN $3::bigint
                           ELSE (place - 2) * $3::bigint / greatest(n - 2, 1) END AS bucket,
               ARRAY[value, step::float8, at_ms::float8] AS sample, value <> 'NaN' AS known
          FROM placed)
    SELECT w.tracked_id, w.key, b.n, b.low, b.high
      FROM wanted AS w
      JOIN (SELECT id, n, bucket,
                   coalesce(min(sample) FILTER (WHERE known), min(sample)) AS low,
                   coalesce(max(sample) FILTER (WHERE known), min(sample)) AS high
              FROM bucketed GROUP BY id, n, bucket) AS b ON b.id = w.id
     ORDER BY w.key, w.id, b.bucket
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class ExperimentRow:
    """One line of the list of experiments."""

    id: int
    project: str
    name: str
    created_ms: int
    updated_ms: int
    runs: int
    """Those that were not deleted."""
    newest_ms: int | None
    """When the newest of them began."""

    @property
    def key(self) -> tuple[str, str, int]:
        """Give it to `experiments` for what follows."""
        return (self.project, self.name, self.id)


@dataclass(frozen=True, slots=True, kw_only=True)
class TrackedRow:
    """One line of a list of tracked runs."""

    id: int
    """Give it to `runs` for what follows; a link uses `uid`."""
    uid: str
    experiment_id: int
    experiment: str
    project: str
    name: str
    user: str
    status: Status
    start_ms: int
    end_ms: int | None
    run_id: int | None
    """The pipeline's run whose step made it, if one did."""
    step_idx: int | None
    step: str | None
    attempt: int | None
    latest: Mapping[str, float]
    """The latest value of each metric, by key."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Curve:
    """One metric of one tracked run."""

    tracked: TrackedRow
    total: int
    """Samples that there are; `points` may hold fewer."""
    points: tuple[Point, ...]
    """By step, then time; values may be NaN or infinite, which JSON and charts must be told."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TrackedParams:
    """The parameters of one tracked run."""

    tracked: TrackedRow
    params: Pairs


async def experiments(
    tx: Tx,
    scope: Scope,
    *,
    project: str | None = None,
    after: tuple[str, str, int] = ("", "", 0),
    limit: int = 50,
) -> list[ExperimentRow]:
    """Living experiments in `scope` by project and name; `after` is the last one's key."""
    rows = await tx.fetch(
        _EXPERIMENTS, scope.everything, list(scope.projects), project, *after, limit
    )
    return [ExperimentRow(**row) for row in rows]


async def runs(
    tx: Tx,
    scope: Scope,
    *,
    project: str | None = None,
    experiment: int | None = None,
    before: int | None = None,
    limit: int = 50,
) -> list[TrackedRow]:
    """Living tracked runs in `scope`, the newest first; `before` is the id of the last one seen."""
    newest = (1 << 63) - 1 if before is None else before
    rows = await tx.fetch(
        _RUNS, scope.everything, list(scope.projects), project, experiment, newest, limit
    )
    return await _tracked(tx, rows)


async def runs_of_run(tx: Tx, scope: Scope, run_id: int) -> list[TrackedRow]:
    """What the steps of one pipeline run tracked, by step, attempt and time."""
    rows = await tx.fetch(_RUNS_OF_RUN, scope.everything, list(scope.projects), run_id)
    return await _tracked(tx, rows)


async def metrics_of_run(
    tx: Tx, scope: Scope, run_id: int, *, points: int = 300
) -> dict[str, list[Curve]]:
    """The curves of one pipeline run by metric, each with the step that reported it.

    A curve has at most `points` points (at least 4), chosen so that its ends, peaks and dips
    stay; at most `MAX_CURVES` curves are given.
    """
    tracked = {row.id: row for row in await runs_of_run(tx, scope, run_id)}
    buckets = (max(points, 4) - 2) // 2
    rows = await tx.fetch(_CURVES, list(tracked), MAX_CURVES, buckets)
    totals: dict[tuple[str, int], int] = {}
    found: defaultdict[tuple[str, int], list[Point]] = defaultdict(list)
    for row in rows:
        name = (row["key"], row["tracked_id"])
        totals[name] = row["n"]
        found[name] += _ends(row)
    by_metric: defaultdict[str, list[Curve]] = defaultdict(list)
    for (key, tracked_id), samples in found.items():
        curve = Curve(
            tracked=tracked[tracked_id],
            total=totals[key, tracked_id],
            points=tuple(samples),
        )
        by_metric[key].append(curve)
    return dict(by_metric)


async def params_of_run(tx: Tx, scope: Scope, run_id: int) -> list[TrackedParams]:
    """The parameters that the steps of one pipeline run reported; those without any left out."""
    tracked = await runs_of_run(tx, scope, run_id)
    params: defaultdict[int, list[tuple[str, str]]] = defaultdict(list)
    for tracked_id, key, value in await tx.fetch(_PARAMS, [row.id for row in tracked]):
        params[tracked_id].append((key, value))
    return [
        TrackedParams(tracked=row, params=tuple(params[row.id]))
        for row in tracked
        if row.id in params
    ]


async def _tracked(tx: Tx, rows: list[Row]) -> list[TrackedRow]:
    latest: defaultdict[int, dict[str, float]] = defaultdict(dict)
    for tracked_id, key, value in await tx.fetch(_LATEST, [row["id"] for row in rows]):
        latest[tracked_id][key] = value
    return [
        TrackedRow(**{**row, "status": Status(row["status"])}, latest=latest[row["id"]])
        for row in rows
    ]


def _ends(row: Row) -> list[Point]:
    """The lowest and the highest sample of a bucket, in the order in which they came."""
    both = [
        Point(step=int(step), at_ms=int(at_ms), value=value)
        for value, step, at_ms in (row["low"], row["high"])
    ]
    return sorted(set(both), key=lambda p: (p.step, p.at_ms)) if both[0] != both[1] else both[:1]
