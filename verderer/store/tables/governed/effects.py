"""What runs and waits in a resource group: what a change of it is weighed by."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from verderer.store.database import Tx

_WAITING = """
    SELECT q.shape_id, count(*)::int AS steps, s.requests, s.nodes
      FROM (SELECT shape_id FROM queue WHERE resource_group_id = $1 LIMIT 100000) AS q
      JOIN shapes AS s ON s.id = q.shape_id
     GROUP BY q.shape_id, s.requests, s.nodes
"""
_LIVE_ON = """
    SELECT c.cluster_id, count(*)::int AS n
      FROM attempts AS a JOIN clusters AS c ON c.id = a.cluster_id
     WHERE c.cluster_id = ANY($2) AND a.resource_group_id = $1
       AND a.state IN ('assigned', 'starting', 'running', 'stopping')
     GROUP BY 1
"""
_CLUSTERS = """
    SELECT c.cluster_id
      FROM resource_groups AS g
      JOIN clusters AS c ON c.retired_at IS NULL AND (g.every_cluster OR EXISTS (
           SELECT FROM resource_group_clusters AS m
            WHERE m.resource_group_id = g.id AND m.cluster_id = c.id))
     WHERE g.id = $1 ORDER BY c.cluster_id
"""


async def waiting_lots(tx: Tx, group: int) -> list[tuple[int, Mapping[str, int], int]]:
    """Steps that wait in a group, how much each asks for on a node, and on how many nodes.

    Of the first 100,000 that are found.
    """
    return [(r["steps"], r["requests"], r["nodes"]) for r in await tx.fetch(_WAITING, group)]


async def live_on(tx: Tx, group: int, clusters: Sequence[str]) -> dict[str, int]:
    """How many attempts of a group are under way on each of `clusters`."""
    return {row["cluster_id"]: row["n"] for row in await tx.fetch(_LIVE_ON, group, clusters)}


async def cluster_names(tx: Tx, group: int) -> list[str]:
    """The cluster_ids of a group's clusters at this moment."""
    return [row["cluster_id"] for row in await tx.fetch(_CLUSTERS, group)]
