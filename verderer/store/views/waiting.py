"""Why steps wait: what each asks for and what stands in its way, cluster by cluster."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from verderer.core.model.actor import Scope
from verderer.store.database import Tx

_WAITING = """
    SELECT s.idx, s.name, s.attempts, q.ready_at, q.not_before, h.requests, h.nodes, o.reasons,
           o.since
      FROM queue AS q
      JOIN runs AS r ON r.id = q.run_id
      JOIN steps AS s ON s.id = q.step_id
      JOIN shapes AS h ON h.id = q.shape_id
      LEFT JOIN lane_holds AS o ON o.project_id = q.project_id AND o.shape_id = q.shape_id
                               AND o.resource_group_id = q.resource_group_id
     WHERE q.run_id = $1 AND ($2 OR r.project_id = ANY($3::int[]))
       AND ($4::int IS NULL OR s.idx = $4)
     ORDER BY s.idx LIMIT $5
"""

_BLOCKERS = """
    SELECT p.idx, p.name, p.state::text AS state
      FROM steps AS s
      JOIN runs AS r ON r.id = s.run_id
      JOIN needs AS n ON n.successor_id = s.id
      JOIN steps AS p ON p.id = n.step_id
     WHERE s.run_id = $1 AND ($2 OR r.project_id = ANY($3::int[])) AND s.idx = $4
       AND p.state IN ('blocked', 'ready', 'active')
     ORDER BY p.idx LIMIT $5
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Waiting:
    """A step that waits for a place to run. Its place in the queue is not known."""

    idx: int
    name: str
    attempts: int
    """Above 0: it waits to be tried again."""
    ready_at: datetime
    not_before: datetime | None
    """It is not looked at before: the pause between two attempts."""
    requests: Mapping[str, int]
    """Base units, on each node."""
    nodes: int
    reasons: tuple[Mapping[str, Any], ...]
    """As placement wrote them, one for each cluster considered; empty: not looked at yet."""
    since: datetime | None
    """When these reasons were found."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Blocker:
    """A step that must be over first."""

    idx: int
    name: str
    state: str


async def waiting(
    tx: Tx, scope: Scope, run: int, idx: int | None = None, *, limit: int = 200
) -> list[Waiting]:
    """The run's steps that wait for a place, or the one of them at `idx`, with their reasons."""
    rows = await tx.fetch(_WAITING, run, scope.everything, list(scope.projects), idx, limit)
    return [Waiting(**dict(row) | {"reasons": tuple(row["reasons"] or ())}) for row in rows]


async def blockers(tx: Tx, scope: Scope, run: int, idx: int, *, limit: int = 20) -> list[Blocker]:
    """What the blocked step at `idx` waits for, of the steps that it needs itself."""
    rows = await tx.fetch(_BLOCKERS, run, scope.everything, list(scope.projects), idx, limit)
    return [Blocker(**dict(row)) for row in rows]
