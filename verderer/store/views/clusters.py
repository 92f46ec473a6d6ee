"""Clusters: what they can give, what is promised out of it, and when they were last heard of."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from verderer.core.model.actor import Scope
from verderer.core.model.cluster import CheckLevel
from verderer.store.database import Row, Tx

OFFLINE_AFTER: Final = timedelta(seconds=30)
"""A cluster that has been silent for longer is offline, and its work unknown."""

_CLUSTERS = """
    SELECT c.id, c.cluster_id, c.kind::text AS kind, c.enabled, c.epoch, c.agent_version,
           c.revision, c.created_at, c.unfit, b.seen_at,
           (SELECT max(t.expires_at) FROM join_tokens AS t
             WHERE t.cluster_id = c.id AND t.used_at IS NULL AND t.expires_at > now())
               AS invited_until,
           extract(epoch FROM now() - b.seen_at)::float AS silent_s,
           coalesce(n.nodes, 0) AS nodes, coalesce(n.ready, 0) AS ready
      FROM clusters AS c
      LEFT JOIN heartbeats AS b ON b.cluster_id = c.id
      LEFT JOIN LATERAL (
           SELECT count(*)::int AS nodes, (count(*) FILTER (WHERE ready))::int AS ready
             FROM nodes WHERE nodes.cluster_id = c.id) AS n ON true
     WHERE c.retired_at IS NULL AND ($1::text IS NULL OR c.cluster_id = $1)
     ORDER BY c.cluster_id
"""

_CAPACITY = """
    SELECT cluster_id, resource, allocatable, largest, reserved
      FROM capacity WHERE cluster_id = ANY($1::int[])
     ORDER BY cluster_id, resource
"""

_NODES = """
    SELECT n.name, n.ready, n.allocatable, n.labels, n.cpu_load, n.memory_free, n.reported_at
      FROM nodes AS n JOIN clusters AS c ON c.id = n.cluster_id
     WHERE c.cluster_id = $1
     ORDER BY n.ready, n.name LIMIT $2
"""

# Only the reader's own work is named; how busy others are shows in `reserved` alone.
_LIVE = """
    SELECT s.run_id, r.name AS run, p.name AS project, s.idx, s.name AS step, a.number,
           a.state::text AS state, a.node, a.started_at
      FROM clusters AS c
      JOIN attempts AS a ON a.cluster_id = c.id AND a.ended_at IS NULL
      JOIN steps AS s ON s.id = a.step_id
      JOIN runs AS r ON r.id = s.run_id
      JOIN projects AS p ON p.id = r.project_id
     WHERE c.cluster_id = $1 AND ($2 OR r.project_id = ANY($3::int[]))
     ORDER BY a.revision DESC LIMIT $4
"""


_CHECKS = """
    SELECT name, level, required, message, remedy, checked_at
      FROM cluster_checks WHERE cluster_id = $1 ORDER BY place
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Capacity:
    """One resource of a cluster, in base units (bytes, or thousandths)."""

    resource: str
    allocatable: int
    largest: int
    """The most that any one ready node has."""
    reserved: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterRow:
    """A cluster with its capacity."""

    id: int
    cluster_id: str
    kind: str
    enabled: bool
    epoch: int
    agent_version: str
    revision: int
    created_at: datetime
    seen_at: datetime | None
    """None: its agent has never called."""
    silent_s: float | None
    """Seconds since the last heartbeat, by the database's clock."""
    nodes: int
    ready: int
    """Nodes that may receive work."""
    unfit: str
    """The required check that does not pass there; empty: none."""
    invited_until: datetime | None
    """An agent may still join with a token until then."""
    capacity: tuple[Capacity, ...] = ()

    @property
    def state(self) -> str:
        """`online`, `offline`, `disabled`, `unfit`, `joining`, or `never` heard of."""
        if not self.enabled:
            return "disabled"
        if self.seen_at is None:
            return "joining" if self.invited_until is not None else "never"
        if not self.online:
            return "offline"
        return "unfit" if self.unfit else "online"

    @property
    def online(self) -> bool:
        """Whether its agent was heard of lately."""
        return self.silent_s is not None and self.silent_s < OFFLINE_AFTER.total_seconds()


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckRow:
    """One check, as its agent last told it."""

    name: str
    level: CheckLevel
    required: bool
    message: str
    remedy: str
    checked_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeRow:
    """A node as its agent last reported it."""

    name: str
    ready: bool
    allocatable: Mapping[str, int]
    labels: Mapping[str, str]
    cpu_load: float | None
    """Busy share of all cores, 0 to 1."""
    memory_free: int | None
    reported_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class LiveRow:
    """An attempt that is under way on the cluster."""

    run_id: int
    run: str
    project: str
    idx: int
    step: str
    number: int
    state: str
    node: str
    started_at: datetime | None


async def list_clusters(tx: Tx, scope: Scope) -> list[ClusterRow]:
    """Every cluster: which ones exist is no secret of any project, so `scope` hides none."""
    del scope
    return await _clusters(tx, None)


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterDetail:
    """A cluster with its nodes and what the reader runs on it."""

    cluster: ClusterRow
    nodes: tuple[NodeRow, ...]
    live: tuple[LiveRow, ...]
    checks: tuple[CheckRow, ...]


async def get_cluster(
    tx: Tx, scope: Scope, cluster_id: str, *, nodes: int = 2_000, live: int = 200
) -> ClusterDetail | None:
    """One cluster with at most so many nodes and attempts, or None when there is none."""
    found = await _clusters(tx, cluster_id)
    if not found:
        return None
    seats = await tx.fetch(_NODES, cluster_id, nodes)
    work = await tx.fetch(_LIVE, cluster_id, scope.everything, list(scope.projects), live)
    checks = await tx.fetch(_CHECKS, found[0].id)
    return ClusterDetail(
        cluster=found[0],
        nodes=tuple(NodeRow(**dict(row)) for row in seats),
        live=tuple(LiveRow(**dict(row)) for row in work),
        checks=tuple(CheckRow(**dict(row) | {"level": CheckLevel(row["level"])}) for row in checks),
    )


async def _clusters(tx: Tx, cluster_id: str | None) -> list[ClusterRow]:
    rows = await tx.fetch(_CLUSTERS, cluster_id)
    amounts = await tx.fetch(_CAPACITY, [row["id"] for row in rows])
    return [_with_capacity(row, amounts) for row in rows]


def _with_capacity(row: Row, amounts: list[Row]) -> ClusterRow:
    return ClusterRow(
        **dict(row),
        capacity=tuple(
            Capacity(
                resource=a["resource"],
                allocatable=a["allocatable"],
                largest=a["largest"],
                reserved=a["reserved"],
            )
            for a in amounts
            if a["cluster_id"] == row["id"]
        ),
    )
