"""Resource groups: their clusters, label rules and order, and the version of all rules."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import asyncpg

from verderer.core.errors import Conflict
from verderer.core.governance.model import Order
from verderer.store.database import Row, Tx

_RAISE = "UPDATE governance SET version = version + 1"
_VERSION = "SELECT version, extract(epoch FROM now())::float8 AS now FROM governance"
_ADD = """
    INSERT INTO resource_groups (name, title, every_cluster, labels, queue_order)
    VALUES ($1, $2, $3, $4, $5) RETURNING id
"""
_LOCK = """
    SELECT id, name, title, every_cluster, labels, queue_order, version
      FROM resource_groups WHERE name = $1 AND retired_at IS NULL FOR NO KEY UPDATE
"""
_CHANGE = """
    UPDATE resource_groups
       SET title = $2, every_cluster = $3, labels = $4, queue_order = $5, version = version + 1
     WHERE id = $1
"""
_RETIRE = "UPDATE resource_groups SET retired_at = now(), version = version + 1 WHERE id = $1"
_CLUSTER_IDS = "SELECT id, cluster_id FROM clusters WHERE cluster_id = ANY($1)"
_LEAVE = """
    DELETE FROM resource_group_clusters WHERE resource_group_id = $1 AND NOT cluster_id = ANY($2)
"""
_ENTER = """
    INSERT INTO resource_group_clusters (resource_group_id, cluster_id)
    SELECT $1, unnest($2::int[]) ON CONFLICT DO NOTHING
"""
_OPEN_RUNS = """
    SELECT count(*) FROM (
        SELECT FROM runs WHERE resource_group_id = $1 AND open > 0 LIMIT 1000) AS r
"""
_ALL = """
    SELECT g.id, g.name, g.every_cluster, g.labels, g.queue_order,
           coalesce(array_agg(c.cluster_id) FILTER (WHERE c.cluster_id IS NOT NULL), '{}')
               AS clusters
      FROM resource_groups AS g
      LEFT JOIN resource_group_clusters AS c ON c.resource_group_id = g.id
     WHERE g.retired_at IS NULL
     GROUP BY g.id
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    """A resource group as people define it, its quotas aside."""

    id: int = 0
    name: str
    title: str = ""
    every_cluster: bool = False
    labels: Mapping[str, str] = field(default_factory=dict)
    order: Order = Order.FAIR
    version: int = 0


async def raise_version(tx: Tx) -> None:
    """Rules are about to change: wait for whoever gives out work under the present ones."""
    await tx.execute(_RAISE)


async def version(tx: Tx) -> tuple[int, float]:
    """The version of the rules, and the database's Unix time."""
    row = await tx.fetchrow(_VERSION)
    assert row is not None  # noqa: S101 - the migration put it there
    return row["version"], row["now"]


async def add(tx: Tx, group: Group) -> int:
    """Insert a group; its id.

    Raises:
        Conflict: the name is taken.
    """
    try:
        found: int = await tx.fetchval(
            _ADD, group.name, group.title, group.every_cluster, group.labels, group.order.value
        )
    except asyncpg.UniqueViolationError as e:
        raise Conflict(f"there is a resource group {group.name} already") from e
    return found


async def lock(tx: Tx, name: str) -> Group | None:
    """Hold a group until the transaction ends."""
    row = await tx.fetchrow(_LOCK, name)
    if row is None:
        return None
    values = dict(row)
    return Group(order=Order(values.pop("queue_order")), **values)


async def change(tx: Tx, group: Group) -> None:
    """Write everything of a group but its name."""
    await tx.execute(
        _CHANGE, group.id, group.title, group.every_cluster, group.labels, group.order.value
    )


async def retire(tx: Tx, group: int) -> None:
    """It is gone for people; runs that were in it keep saying so."""
    await tx.execute(_RETIRE, group)


async def cluster_ids(tx: Tx, names: Sequence[str]) -> dict[str, int]:
    """Ids of clusters by their cluster_id; unknown ones are left out."""
    return {row["cluster_id"]: row["id"] for row in await tx.fetch(_CLUSTER_IDS, names)}


async def set_clusters(tx: Tx, group: int, clusters: Sequence[int]) -> None:
    """Replace the list of a group's clusters."""
    await tx.execute(_LEAVE, group, clusters)
    await tx.execute(_ENTER, group, clusters)


async def open_runs(tx: Tx, group: int) -> int:
    """How many runs of the group are not over; counted up to 1,000."""
    found: int = await tx.fetchval(_OPEN_RUNS, group)
    return found


async def all_groups(tx: Tx) -> list[Row]:
    """Every group with its rules and the ids of its clusters."""
    return list(await tx.fetch(_ALL))
