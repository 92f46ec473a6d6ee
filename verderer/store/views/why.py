"""Why the steps of a run do not run: everything that the reasons are made of, a page at a time."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from verderer.core.model.actor import Scope
from verderer.core.model.step import StepState
from verderer.store.database import Tx
from verderer.store.views.clusters import OFFLINE_AFTER

# Steps that wait, and those whose cluster nobody has heard of lately. `LIMIT 20` names: whoever
# needs more than that reads the graph.
_STUCK = """
    SELECT s.id, s.idx, s.name, s.state::text AS state,
           coalesce(q.ready_at, s.ready_at) AS ready_at,
           greatest(0, extract(epoch FROM q.not_before - now()))::float AS pause_s,
           h.requests, h.nodes, o.reasons, c.cluster_id,
           extract(epoch FROM now() - b.seen_at)::float AS silent_s
      FROM steps AS s
      JOIN runs AS r ON r.id = s.run_id
      JOIN shapes AS h ON h.id = s.shape_id
      LEFT JOIN queue AS q ON q.step_id = s.id
      LEFT JOIN holds AS o ON o.project_id = r.project_id AND o.shape_id = s.shape_id
                          AND s.state = 'ready'
      LEFT JOIN attempts AS a ON a.step_id = s.id AND a.number = s.attempts
                             AND s.state = 'active'
      LEFT JOIN clusters AS c ON c.id = a.cluster_id
      LEFT JOIN heartbeats AS b ON b.cluster_id = a.cluster_id
     WHERE s.run_id = $1 AND ($2 OR r.project_id = ANY($3::int[]))
       AND s.idx > $4 AND ($5::int IS NULL OR s.idx = $5)
       AND ($5 IS NOT NULL OR s.state IN ('blocked', 'ready')
            OR (s.state = 'active' AND b.seen_at < now() - $7::interval))
     ORDER BY s.idx LIMIT $6
"""
_NEEDED = """
    SELECT n.successor_id AS step, p.name
      FROM unnest($1::bigint[]) AS w (id),
           LATERAL (SELECT m.successor_id, m.step_id FROM needs AS m
                      JOIN steps AS t ON t.id = m.step_id
                     WHERE m.successor_id = w.id AND t.state IN ('blocked', 'ready', 'active')
                     ORDER BY t.idx LIMIT 20) AS n
      JOIN steps AS p ON p.id = n.step_id
     ORDER BY n.successor_id, p.idx
"""
_SCHEDULER = """
    SELECT extract(epoch FROM now() - expires_at)::float FROM leases WHERE name = 'placement'
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class StuckStep:
    """A step that waits, or that nobody knows about."""

    idx: int
    name: str
    state: StepState
    ready_at: datetime | None
    pause_s: float
    """Seconds left of the pause before the next attempt; 0: there is none."""
    requests: Mapping[str, int]
    """Base units, on each node."""
    nodes: int
    reasons: tuple[Mapping[str, Any], ...] | None
    """As placement wrote them; None: it has not looked yet."""
    needs: tuple[str, ...]
    """Names of the steps that it waits for, 20 at most."""
    cluster: str
    """Where its attempt is under way; empty: nowhere."""
    silent_s: float | None
    """Seconds since that cluster was last heard of."""


async def stuck_steps(
    tx: Tx, scope: Scope, run: int, idx: int | None = None, *, after: int = -1, limit: int = 200
) -> list[StuckStep]:
    """Steps that wait or are unknown, from behind index `after`; with `idx` that one in any case.

    `OFFLINE_AFTER` without a heartbeat make an attempt unknown.
    """
    rows = await tx.fetch(
        _STUCK, run, scope.everything, list(scope.projects), after, idx, limit, OFFLINE_AFTER
    )
    needs: defaultdict[int, list[str]] = defaultdict(list)
    if blocked := [row["id"] for row in rows if row["state"] == "blocked"]:
        for row in await tx.fetch(_NEEDED, blocked):
            needs[row["step"]].append(row["name"])
    return [
        StuckStep(
            idx=row["idx"],
            name=row["name"],
            state=StepState(row["state"]),
            ready_at=row["ready_at"],
            pause_s=row["pause_s"] or 0.0,
            requests=row["requests"],
            nodes=row["nodes"],
            reasons=tuple(row["reasons"]) if row["reasons"] is not None else None,
            needs=tuple(needs[row["id"]]),
            cluster=row["cluster_id"] or "",
            silent_s=row["silent_s"],
        )
        for row in rows
    ]


async def scheduler_gone_s(tx: Tx, scope: Scope) -> float | None:
    """Seconds since a scheduler led last; negative while one leads, None when none ever did."""
    del scope  # whether one leads is no secret of any project
    gone: float | None = await tx.fetchval(_SCHEDULER)
    return gone
