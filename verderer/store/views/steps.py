"""The parts of a run: its steps with their newest attempts, edges, attempts and artifacts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum

from verderer.core.model.actor import Scope
from verderer.core.model.attempt import AttemptState, End, EndCause
from verderer.core.model.step import StepState
from verderer.store.database import Row, Tx
from verderer.store.views.clusters import OFFLINE_AFTER

_STEPS = """
    SELECT s.id, s.idx, s.name, s.template, s.matrix, s.state::text AS state, s.waits, s.attempts,
           s.note, s.ready_at, s.started_at, s.ended_at, h.requests, h.nodes,
           a.number, a.state::text AS attempt_state, c.cluster_id, a.node,
           a.assigned_at, a.started_at AS attempt_started_at, a.ended_at AS attempt_ended_at,
           a.cause::text AS cause, a.exit_code, a.signal, a.message,
           b.seen_at, coalesce(b.seen_at < now() - $6::interval, true) AS offline
      FROM steps AS s
      JOIN runs AS r ON r.id = s.run_id
      JOIN shapes AS h ON h.id = s.shape_id
      LEFT JOIN attempts AS a ON a.step_id = s.id AND a.number = s.attempts
      LEFT JOIN clusters AS c ON c.id = a.cluster_id
      LEFT JOIN heartbeats AS b ON b.cluster_id = a.cluster_id
     WHERE s.run_id = $1 AND ($2 OR r.project_id = ANY($3::int[])) AND s.idx > $4
     ORDER BY s.idx LIMIT $5
"""

_EDGES = """
    SELECT s.idx AS step, t.idx AS successor
      FROM steps AS s
      JOIN runs AS r ON r.id = s.run_id
      JOIN needs AS n ON n.step_id = s.id
      JOIN steps AS t ON t.id = n.successor_id
     WHERE s.run_id = $1 AND ($2 OR r.project_id = ANY($3::int[]))
     ORDER BY s.idx, t.idx
"""

_ATTEMPTS = """
    SELECT a.number, a.state::text AS state, c.cluster_id, a.node, a.assigned_at, a.started_at,
           a.ended_at, a.cause::text AS cause, a.exit_code, a.signal, a.message,
           b.seen_at, coalesce(b.seen_at < now() - $5::interval, true) AS offline,
           coalesce(a.ended_at < now() - interval '10 minutes', false) AS settled
      FROM steps AS s
      JOIN runs AS r ON r.id = s.run_id
      JOIN attempts AS a ON a.step_id = s.id
      JOIN clusters AS c ON c.id = a.cluster_id
      LEFT JOIN heartbeats AS b ON b.cluster_id = a.cluster_id
     WHERE s.run_id = $1 AND ($2 OR r.project_id = ANY($3::int[])) AND s.idx = $4
     ORDER BY a.number
"""

_ARTIFACTS = """
    SELECT s.idx, s.name AS step, f.number, f.name, f.key, f.size, f.files, f.sha256, f.created_at
      FROM steps AS s
      JOIN runs AS r ON r.id = s.run_id
      JOIN artifacts AS f ON f.step_id = s.id
     WHERE s.run_id = $1 AND ($2 OR r.project_id = ANY($3::int[]))
       AND ($4::int IS NULL OR s.idx = $4)
     ORDER BY s.idx, f.number, f.name LIMIT $5
"""

ALL_STEPS = 10_000
"""As many as any run can have."""


class Shown(StrEnum):
    """What people see of a step: its own state, its attempt's, and whether anybody knows."""

    WAITING = "waiting"
    STARTING = "starting"
    RUNNING = "running"
    STOPPING = "stopping"
    SUCCEEDED = "succeeded"
    FAILED = "failed"
    CANCELLED = "cancelled"
    SKIPPED = "skipped"
    LOST = "lost"
    UNKNOWN = "unknown"  # its cluster has not been heard of; `seen_at` says since when


_OF_STEP = {
    StepState.BLOCKED: Shown.WAITING,
    StepState.READY: Shown.WAITING,
    StepState.SUCCEEDED: Shown.SUCCEEDED,
    StepState.FAILED: Shown.FAILED,
    StepState.CANCELLED: Shown.CANCELLED,
    StepState.SKIPPED: Shown.SKIPPED,
}
_OF_ATTEMPT = {
    AttemptState.ASSIGNED: Shown.STARTING,
    AttemptState.STARTING: Shown.STARTING,
    AttemptState.RUNNING: Shown.RUNNING,
    AttemptState.STOPPING: Shown.STOPPING,
    AttemptState.SUCCEEDED: Shown.SUCCEEDED,
    AttemptState.FAILED: Shown.FAILED,
    AttemptState.CANCELLED: Shown.CANCELLED,
    AttemptState.LOST: Shown.LOST,
}


def shown_attempt(state: AttemptState, *, offline: bool) -> Shown:
    """What people see of an attempt; `offline` says that its cluster is silent."""
    if offline and not state.over:
        return Shown.UNKNOWN
    return _OF_ATTEMPT[state]


def shown_step(state: StepState, attempt: AttemptState | None, *, offline: bool) -> Shown:
    """What people see of a step with its newest attempt."""
    if state is not StepState.ACTIVE:
        return _OF_STEP[state]
    return shown_attempt(attempt, offline=offline) if attempt else Shown.STARTING


@dataclass(frozen=True, slots=True, kw_only=True)
class AttemptRow:
    """One launch of a step."""

    number: int
    state: AttemptState
    cluster_id: str
    node: str
    assigned_at: datetime
    started_at: datetime | None
    ended_at: datetime | None
    cause: EndCause | None
    exit_code: int | None
    signal: int | None
    message: str
    seen_at: datetime | None
    """When its cluster was last heard of."""
    offline: bool
    """The cluster has been silent for longer than `clusters.OFFLINE_AFTER`."""
    settled: bool = False
    """It ended so long ago that nothing of its output is on its way any more; lists of attempts
    alone tell."""

    @property
    def end(self) -> End | None:
        """How it ended; None while it has not."""
        if self.cause is None:
            return None
        return End(
            cause=self.cause,
            exit_code=self.exit_code,
            signal=self.signal,
            message=self.message,
        )

    @property
    def shown(self) -> Shown:
        """What people see: `unknown` while it is not over and its cluster is silent."""
        return shown_attempt(self.state, offline=self.offline)


@dataclass(frozen=True, slots=True, kw_only=True)
class StepRow:
    """A step with its newest attempt."""

    id: int
    idx: int
    name: str
    template: int
    """Index of the step in the pipeline document; instances of one matrix share it."""
    matrix: Mapping[str, str] | None
    state: StepState
    waits: int
    """Needed steps that are not over."""
    attempts: int
    note: str
    requests: Mapping[str, int]
    """Base units, on each node."""
    nodes: int
    ready_at: datetime | None
    started_at: datetime | None
    ended_at: datetime | None
    attempt: AttemptRow | None
    """None: it was never handed to a cluster."""

    @property
    def shown(self) -> Shown:
        """What people see: while an attempt is under way, what is known of that."""
        if self.attempt is None:
            return shown_step(self.state, None, offline=False)
        return shown_step(self.state, self.attempt.state, offline=self.attempt.offline)


@dataclass(frozen=True, slots=True)
class Edge:
    """`step` must be over before `successor` may start; both are indices in the run."""

    step: int
    successor: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ArtifactRow:
    """Something that an attempt left in object storage."""

    idx: int
    step: str
    number: int
    name: str
    key: str
    size: int
    files: int
    """1: a file of that key; more, or a key that ends in `/`: a directory below it."""
    sha256: str
    created_at: datetime


async def list_steps(
    tx: Tx, scope: Scope, run: int, *, after: int = -1, limit: int = ALL_STEPS
) -> list[StepRow]:
    """The steps of the run in their order, from the one that follows index `after`."""
    rows = await tx.fetch(
        _STEPS, run, scope.everything, list(scope.projects), after, limit, _offline()
    )
    return [_step(row) for row in rows]


async def get_step(tx: Tx, scope: Scope, run: int, idx: int) -> StepRow | None:
    """One step, or None when there is none or it is outside `scope`."""
    found = await list_steps(tx, scope, run, after=idx - 1, limit=1)
    return found[0] if found and found[0].idx == idx else None


async def list_edges(tx: Tx, scope: Scope, run: int) -> list[Edge]:
    """The graph of the run."""
    rows = await tx.fetch(_EDGES, run, scope.everything, list(scope.projects))
    return [Edge(row["step"], row["successor"]) for row in rows]


async def list_attempts(tx: Tx, scope: Scope, run: int, idx: int) -> list[AttemptRow]:
    """All attempts of one step, the first one first."""
    rows = await tx.fetch(_ATTEMPTS, run, scope.everything, list(scope.projects), idx, _offline())
    return [
        AttemptRow(
            **dict(row)
            | {
                "state": AttemptState(row["state"]),
                "cause": EndCause(row["cause"]) if row["cause"] else None,
            }
        )
        for row in rows
    ]


async def list_artifacts(
    tx: Tx, scope: Scope, run: int, idx: int | None = None, *, limit: int = 2_000
) -> list[ArtifactRow]:
    """Artifacts of the run, or of one of its steps."""
    rows = await tx.fetch(_ARTIFACTS, run, scope.everything, list(scope.projects), idx, limit)
    return [ArtifactRow(**dict(row)) for row in rows]


def _offline() -> timedelta:
    return OFFLINE_AFTER


def _step(row: Row) -> StepRow:
    own = ("id", "idx", "name", "template", "matrix", "waits", "attempts", "note", "requests")
    times = ("nodes", "ready_at", "started_at", "ended_at")
    return StepRow(
        state=StepState(row["state"]),
        attempt=_newest(row),
        **{name: row[name] for name in own + times},
    )


def _newest(row: Row) -> AttemptRow | None:
    if row["number"] is None:
        return None
    return AttemptRow(
        number=row["number"],
        state=AttemptState(row["attempt_state"]),
        cluster_id=row["cluster_id"],
        node=row["node"],
        assigned_at=row["assigned_at"],
        started_at=row["attempt_started_at"],
        ended_at=row["attempt_ended_at"],
        cause=EndCause(row["cause"]) if row["cause"] else None,
        exit_code=row["exit_code"],
        signal=row["signal"],
        message=row["message"],
        seen_at=row["seen_at"],
        offline=row["offline"],
    )
