"""The first page: what needs somebody, what runs, what waits and why."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from verderer.core.model.actor import Scope
from verderer.core.model.ids import make_run_id
from verderer.core.model.run import RunState
from verderer.store.database import Tx
from verderer.store.views.clusters import ClusterRow, list_clusters
from verderer.store.views.runs import RunFilter, RunRow, list_runs, run_counts
from verderer.store.views.visible import visible_projects

LOOKED_AT = 5_000
"""How many waiting steps, of the newest 500 live runs, are looked at for the summary."""

_WAITING = """
    WITH live AS (
        SELECT r.id
          FROM unnest($1::int[]) AS p, unnest(ARRAY['queued', 'running']::run_state[]) AS s,
               LATERAL (SELECT id FROM runs
                         WHERE project_id = p AND state = s ORDER BY id DESC LIMIT 500) AS r
         ORDER BY r.id DESC LIMIT 500),
    ready AS (
        SELECT q.project_id, q.shape_id, q.resource_group_id, q.ready_at
          FROM live JOIN queue AS q ON q.run_id = live.id LIMIT $2)
    SELECT q.project_id, q.shape_id, count(*)::int AS steps, min(q.ready_at) AS oldest,
           h.requests, h.nodes, o.reasons
      FROM ready AS q
      JOIN shapes AS h ON h.id = q.shape_id
      LEFT JOIN lane_holds AS o ON o.project_id = q.project_id AND o.shape_id = q.shape_id
                               AND o.resource_group_id = q.resource_group_id
     GROUP BY q.project_id, q.shape_id, h.requests, h.nodes, o.reasons
     ORDER BY steps DESC LIMIT 20
"""

_UNKNOWN = """
    SELECT count(*)::int FROM (
        SELECT FROM attempts
         WHERE cluster_id = $1 AND ended_at IS NULL LIMIT 10000) AS few
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class WaitingGroup:
    """Steps of one shape in one project that wait for the same reasons."""

    project_id: int
    steps: int
    oldest: datetime
    requests: Mapping[str, int]
    nodes: int
    reasons: tuple[Mapping[str, Any], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Silent:
    """A cluster that is offline, and how many attempts are unknown for it (10,000 at most)."""

    cluster: ClusterRow
    unknown: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Overview:
    """Everything that the first page shows."""

    counts: Mapping[RunState, int]
    running: tuple[RunRow, ...]
    failed: tuple[RunRow, ...]
    """Of the last day."""
    recent: tuple[RunRow, ...]
    waiting: tuple[WaitingGroup, ...]
    clusters: tuple[ClusterRow, ...]
    silent: tuple[Silent, ...]


async def overview(
    tx: Tx, scope: Scope, project: str | None = None, *, now: datetime, limit: int = 8
) -> Overview:
    """The first page of a reader, for one project or all that they may see."""
    projects = await visible_projects(tx, scope, project)
    clusters = await list_clusters(tx, scope)
    groups = await tx.fetch(_WAITING, projects, LOOKED_AT)
    live = frozenset({RunState.RUNNING, RunState.CANCELLING, RunState.QUEUED})
    failed = RunFilter(project=project, states=frozenset({RunState.FAILED}))
    failures = (await list_runs(tx, scope, failed, limit=limit)).rows
    day = make_run_id(unix_ms=int((now - timedelta(days=1)).timestamp() * 1000), chance=0)
    return Overview(
        counts=await run_counts(tx, scope, project),
        running=(
            await list_runs(tx, scope, RunFilter(project=project, states=live), limit=limit)
        ).rows,
        failed=tuple(run for run in failures if run.id >= day),
        recent=(await list_runs(tx, scope, RunFilter(project=project), limit=limit)).rows,
        waiting=tuple(
            WaitingGroup(
                project_id=g["project_id"],
                steps=g["steps"],
                oldest=g["oldest"],
                requests=g["requests"],
                nodes=g["nodes"],
                reasons=tuple(g["reasons"] or ()),
            )
            for g in groups
        ),
        clusters=tuple(clusters),
        silent=tuple([await _silent(tx, c) for c in clusters if c.enabled and not c.online]),
    )


async def _silent(tx: Tx, cluster: ClusterRow) -> Silent:
    return Silent(cluster=cluster, unknown=await tx.fetchval(_UNKNOWN, cluster.id))
