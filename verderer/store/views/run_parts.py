"""A run's steps by name, counted, and in the few columns that a live view compares."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from datetime import datetime

from verderer.core.model.actor import Scope
from verderer.core.model.attempt import AttemptState
from verderer.core.model.run import RunState
from verderer.core.model.step import StepState
from verderer.store.database import Tx
from verderer.store.views.clusters import OFFLINE_AFTER
from verderer.store.views.steps import Shown, shown_step

_HEAD = """
    SELECT id, project_id AS project, state::text AS state, steps
      FROM runs WHERE id = $1 AND ($2 OR project_id = ANY($3::int[]))
"""
_BY_NAME = """
    SELECT s.idx
      FROM steps AS s JOIN runs AS r ON r.id = s.run_id
     WHERE s.run_id = $1 AND ($2 OR r.project_id = ANY($3::int[])) AND s.name = $4
"""
_COUNTS = """
    SELECT s.state::text AS state, a.state::text AS attempt,
           coalesce(b.seen_at < now() - $4::interval, true) AS offline, count(*)::int AS n
      FROM steps AS s
      JOIN runs AS r ON r.id = s.run_id
      LEFT JOIN attempts AS a ON a.step_id = s.id AND a.number = s.attempts
                             AND s.state = 'active'
      LEFT JOIN heartbeats AS b ON b.cluster_id = a.cluster_id
     WHERE s.run_id = $1 AND ($2 OR r.project_id = ANY($3::int[]))
     GROUP BY 1, 2, 3
"""
_BRIEF = """
    SELECT s.idx, s.name, s.state::text AS state, s.attempts, s.note, s.started_at, s.ended_at,
           a.state::text AS attempt, coalesce(c.cluster_id, '') AS cluster,
           coalesce(b.seen_at < now() - $4::interval, true) AS offline
      FROM steps AS s
      JOIN runs AS r ON r.id = s.run_id
      LEFT JOIN attempts AS a ON a.step_id = s.id AND a.number = s.attempts
      LEFT JOIN clusters AS c ON c.id = a.cluster_id
      LEFT JOIN heartbeats AS b ON b.cluster_id = a.cluster_id
     WHERE s.run_id = $1 AND ($2 OR r.project_id = ANY($3::int[]))
     ORDER BY s.idx
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunHead:
    """That a run exists and is the reader's to see, and little more."""

    id: int
    project: int
    state: RunState
    steps: int


@dataclass(frozen=True, slots=True, kw_only=True)
class BriefStep:
    """A step as a live view shows it; two that are equal look the same."""

    idx: int
    name: str
    shown: Shown
    attempts: int
    cluster: str
    note: str
    started_at: datetime | None
    ended_at: datetime | None


async def run_head(tx: Tx, scope: Scope, run: int) -> RunHead | None:
    """The run, or None when it does not exist or is outside `scope`."""
    row = await tx.fetchrow(_HEAD, run, scope.everything, list(scope.projects))
    return RunHead(**dict(row) | {"state": RunState(row["state"])}) if row else None


async def find_step(tx: Tx, scope: Scope, run: int, name: str) -> int | None:
    """The index of the step called `name`, or None when the reader sees no such step."""
    found: int | None = await tx.fetchval(
        _BY_NAME, run, scope.everything, list(scope.projects), name
    )
    return found


async def step_counts(tx: Tx, scope: Scope, run: int) -> Counter[Shown]:
    """How many steps of the run people see in each state."""
    counts: Counter[Shown] = Counter()
    rows = await tx.fetch(_COUNTS, run, scope.everything, list(scope.projects), OFFLINE_AFTER)
    for row in rows:
        attempt = AttemptState(row["attempt"]) if row["attempt"] else None
        counts[shown_step(StepState(row["state"]), attempt, offline=row["offline"])] += row["n"]
    return counts


async def brief_steps(tx: Tx, scope: Scope, run: int) -> list[BriefStep]:
    """Every step of the run in its order."""
    rows = await tx.fetch(_BRIEF, run, scope.everything, list(scope.projects), OFFLINE_AFTER)
    return [
        BriefStep(
            idx=row["idx"],
            name=row["name"],
            shown=shown_step(
                StepState(row["state"]),
                AttemptState(row["attempt"]) if row["attempt"] else None,
                offline=row["offline"],
            ),
            attempts=row["attempts"],
            cluster=row["cluster"],
            note=row["note"],
            started_at=row["started_at"],
            ended_at=row["ended_at"],
        )
        for row in rows
    ]
