"""Why the steps of a run do not run: everything that the reasons are made of, a page at a time."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from verderer.core.fencing import Silence
from verderer.core.model.actor import Scope
from verderer.core.model.attempt import AttemptState
from verderer.core.model.step import StepState
from verderer.core.model.waiting import Pending, Waiting
from verderer.store.database import Row, Tx
from verderer.store.views.clusters import OFFLINE_AFTER

# Steps that wait, here or on their cluster, and those of clusters not heard of lately. `LIMIT 20`
# names: whoever needs more than that reads the graph.
_STUCK = """
    SELECT s.id, s.idx, s.name, s.state::text AS state,
           coalesce(q.ready_at, s.ready_at) AS ready_at,
           greatest(0, extract(epoch FROM q.not_before - now()))::float AS pause_s,
           h.requests, h.nodes, o.reasons, c.cluster_id,
           extract(epoch FROM now() - b.seen_at)::float AS silent_s,
           a.state::text AS attempt, a.number, a.assigned_at,
           w.code, w.message, w.numbers, w.hopeless, w.since,
           r.document, s.template, c.stops_within_s,
           coalesce(a.assigned_at >= c.promised_since, false) AS under_promise
      FROM steps AS s
      JOIN runs AS r ON r.id = s.run_id
      JOIN shapes AS h ON h.id = s.shape_id
      LEFT JOIN queue AS q ON q.step_id = s.id
      LEFT JOIN lane_holds AS o ON o.project_id = r.project_id AND o.shape_id = s.shape_id
                               AND o.resource_group_id = r.resource_group_id
                               AND s.state = 'ready'
      LEFT JOIN attempts AS a ON a.step_id = s.id AND a.number = s.attempts
                             AND s.state = 'active'
      LEFT JOIN attempt_waits AS w ON w.step_id = a.step_id AND w.number = a.number
                                  AND a.state IN ('assigned', 'starting')
      LEFT JOIN clusters AS c ON c.id = a.cluster_id
      LEFT JOIN heartbeats AS b ON b.cluster_id = a.cluster_id
     WHERE s.run_id = $1 AND ($2 OR r.project_id = ANY($3::int[]))
       AND s.idx > $4 AND ($5::int IS NULL OR s.idx = $5)
       AND ($5 IS NOT NULL OR s.state IN ('blocked', 'ready')
            OR (s.state = 'active' AND (a.state IN ('assigned', 'starting')
                                        OR b.seen_at < now() - $7::interval)))
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
class OnCluster:
    """Why the newest attempt of a step has not begun on its cluster."""

    state: AttemptState
    """`assigned` or `starting`."""
    waits: Waiting | None
    """What the cluster says; None: nothing yet."""
    since: datetime
    """When it first said so, or when the attempt was given to the cluster."""


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
    on_cluster: OnCluster | None = None
    """Set while its attempt has not begun there."""
    document: bytes = b""
    template: int = 0
    silence: Silence | None = None
    """Set when an attempt of it is under way on a cluster that was heard of at least once."""


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
            on_cluster=on_cluster(row),
            document=row["document"],
            template=row["template"],
            silence=_silence(row),
        )
        for row in rows
    ]


def _silence(row: Row) -> Silence | None:
    if row["silent_s"] is None:
        return None
    return Silence(
        silent_s=row["silent_s"],
        stops_within_s=row["stops_within_s"],
        under_promise=row["under_promise"],
    )


def on_cluster(row: Row) -> OnCluster | None:
    """From a row with an attempt's state and what its cluster says, if it has not begun."""
    if row["attempt"] not in ("assigned", "starting"):
        return None
    waits = None
    if row["code"] is not None:
        known = row["code"] in set(Pending)  # a newer release may have written others
        waits = Waiting(
            code=Pending(row["code"]) if known else Pending.UNKNOWN,
            message=row["message"],
            numbers=row["numbers"],
            hopeless=row["hopeless"],
        )
    since: datetime = row["since"] or row["assigned_at"]
    return OnCluster(state=AttemptState(row["attempt"]), waits=waits, since=since)


async def scheduler_gone_s(tx: Tx, scope: Scope) -> float | None:
    """Seconds since a scheduler led last; negative while one leads, None when none ever did."""
    del scope  # whether one leads is no secret of any project
    gone: float | None = await tx.fetchval(_SCHEDULER)
    return gone
