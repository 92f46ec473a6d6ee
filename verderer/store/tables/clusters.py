"""Clusters: who speaks for them, when they were last heard, and what they can give."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import timedelta

from verderer.core.model.cluster import NodeReport
from verderer.store.database import Row, Tx, columns

_HELLO = """
    UPDATE clusters
       SET epoch = CASE WHEN instance = $2 THEN epoch ELSE epoch + 1 END,
           instance = $2, agent_version = $3
     WHERE id = $1
 RETURNING epoch
"""
_EPOCH = "SELECT 1 FROM clusters WHERE id = $1 AND epoch = $2 FOR KEY SHARE"
_SEEN = """
    INSERT INTO heartbeats AS h (cluster_id, seen_at)
    SELECT c.id, now() - u.ago
      FROM unnest($1::int[], $2::interval[]) AS u (id, ago) JOIN clusters AS c ON c.id = u.id
     ORDER BY c.id
        ON CONFLICT (cluster_id) DO UPDATE SET seen_at = greatest(h.seen_at, excluded.seen_at)
"""
_NODES = """
    INSERT INTO nodes
        (cluster_id, name, ready, allocatable, labels, cpu_load, memory_free, reported_at)
    SELECT $1, name, ready, allocatable, labels, cpu_load, memory_free, now()
      FROM unnest($2::text[], $3::bool[], $4::jsonb[], $5::jsonb[], $6::real[], $7::bigint[])
        AS u (name, ready, allocatable, labels, cpu_load, memory_free)
     ORDER BY name
        ON CONFLICT (cluster_id, name) DO UPDATE
       SET ready = excluded.ready, allocatable = excluded.allocatable, labels = excluded.labels,
           cpu_load = excluded.cpu_load, memory_free = excluded.memory_free,
           reported_at = excluded.reported_at
"""
_GONE = "DELETE FROM nodes WHERE cluster_id = $1 AND NOT name = ANY($2)"
_CAPACITY = """
    INSERT INTO capacity AS c (cluster_id, resource, allocatable, largest)
    SELECT $1, resource, allocatable, largest
      FROM unnest($2::text[], $3::bigint[], $4::bigint[]) AS u (resource, allocatable, largest)
     ORDER BY resource
        ON CONFLICT (cluster_id, resource) DO UPDATE
       SET allocatable = excluded.allocatable, largest = excluded.largest
     WHERE (c.allocatable, c.largest) IS DISTINCT FROM (excluded.allocatable, excluded.largest)
 RETURNING resource
"""
_NO_MORE = """
    UPDATE capacity SET allocatable = 0, largest = 0
     WHERE cluster_id = $1 AND NOT resource = ANY($2) AND allocatable > 0
 RETURNING resource
"""
_RAISE = """
    UPDATE clusters SET revision = revision + 1
     WHERE id IN (SELECT id FROM clusters WHERE id = ANY($1) ORDER BY id FOR NO KEY UPDATE)
"""
_PLACES = """
    SELECT c.id, c.cluster_id, c.kind::text, c.enabled,
           CASE WHEN c.credential_hash IS NULL
                 AND NOT EXISTS (SELECT FROM agent_keys AS k WHERE k.cluster_id = c.id)
                THEN 'agent' ELSE c.unfit END AS unfit,
           coalesce(extract(epoch FROM now() - h.seen_at), 1e9)::float8 AS silent_s,
           (SELECT coalesce(jsonb_object_agg(
                       resource, jsonb_build_array(allocatable, largest, reserved)), '{}')
              FROM capacity AS k WHERE k.cluster_id = c.id) AS capacity
      FROM clusters AS c LEFT JOIN heartbeats AS h ON h.cluster_id = c.id
     WHERE c.retired_at IS NULL
     ORDER BY c.cluster_id
"""
_SILENCE = """
    SELECT coalesce(extract(epoch FROM now() - h.seen_at), 1e9)::float8
      FROM clusters AS c LEFT JOIN heartbeats AS h ON h.cluster_id = c.id
     WHERE c.cluster_id = $1 AND c.retired_at IS NULL
"""
_ENABLE = """
    WITH was AS (SELECT id, enabled FROM clusters WHERE cluster_id = $1 FOR NO KEY UPDATE),
         changed AS (
             UPDATE clusters AS c SET enabled = $2
               FROM was WHERE c.id = was.id AND was.enabled <> $2)
    SELECT enabled <> $2 FROM was
"""
_ADD = """
    INSERT INTO clusters (cluster_id, kind, credential_hash) VALUES ($1, $2, $3)
        ON CONFLICT (cluster_id) DO UPDATE SET credential_hash = excluded.credential_hash
     WHERE clusters.kind = excluded.kind
 RETURNING id
"""


async def put(tx: Tx, cluster_id: str, kind: str, credential_hash: bytes) -> int | None:
    """Make a cluster, or give an existing one of the same kind a new credential; its id."""
    found: int | None = await tx.fetchval(_ADD, cluster_id, kind, credential_hash)
    return found


async def hello(tx: Tx, cluster: int, instance: str, version: str) -> int | None:
    """Open a session and return its epoch; the same instance keeps its own. None: no such one."""
    epoch: int | None = await tx.fetchval(_HELLO, cluster, instance, version)
    return epoch


async def holds_epoch(tx: Tx, cluster: int, epoch: int) -> bool:
    """Whether `epoch` is the cluster's current session."""
    return await tx.fetchval(_EPOCH, cluster, epoch) is not None


async def seen(tx: Tx, clusters: Mapping[int, float]) -> None:
    """These clusters' agents were heard so many seconds ago, by the database's clock."""
    rows = [(cluster, timedelta(seconds=ago)) for cluster, ago in sorted(clusters.items())]
    await tx.execute(_SEEN, *columns(rows, 2))


async def put_nodes(tx: Tx, cluster: int, nodes: Sequence[NodeReport]) -> bool:
    """Replace the list of nodes; return whether what the cluster can give has changed."""
    rows = [
        (n.name, n.ready, n.allocatable.as_dict(), n.labels, n.cpu_load, n.memory_free)
        for n in nodes
    ]
    await tx.execute(_NODES, cluster, *columns(rows, 6))
    await tx.execute(_GONE, cluster, [n.name for n in nodes])
    total: dict[str, int] = {}
    largest: dict[str, int] = {}
    for node in nodes:
        for resource, amount in node.allocatable.items() if node.ready else ():
            total[resource] = total.get(resource, 0) + amount
            largest[resource] = max(largest.get(resource, 0), amount)
    names = sorted(total)
    changed = await tx.fetch(
        _CAPACITY, cluster, names, [total[n] for n in names], [largest[n] for n in names]
    )
    return bool(changed) | bool(await tx.fetch(_NO_MORE, cluster, names))


async def raise_revisions(tx: Tx, clusters: Sequence[int]) -> None:
    """Hold these clusters until the end of the transaction, each under a new revision."""
    await tx.execute(_RAISE, clusters)


async def places(tx: Tx) -> list[Row]:
    """Every cluster with its silence in seconds and capacity {resource: [all, largest, taken]}."""
    return list(await tx.fetch(_PLACES))


async def set_enabled(tx: Tx, cluster_id: str, *, enabled: bool) -> bool | None:
    """Take a cluster out of use or back in; whether that changed anything, None: no such one."""
    changed: bool | None = await tx.fetchval(_ENABLE, cluster_id, enabled)
    return changed


async def silence(tx: Tx, cluster_id: str) -> float | None:
    """Seconds since the cluster was heard, 1e9 if never; None when there is no such one."""
    found: float | None = await tx.fetchval(_SILENCE, cluster_id)
    return found
