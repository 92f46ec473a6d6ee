"""What a scraper reads of the platform as a whole; no row of any project."""

from __future__ import annotations

from dataclasses import dataclass

from verderer.store.database import Tx

_RUNS = "SELECT state::text, sum(n)::bigint AS n FROM run_counters GROUP BY state"
_CLUSTERS = """
    SELECT c.cluster_id, c.kind::text AS kind, c.enabled,
           extract(epoch FROM now() - h.seen_at)::float8 AS silent_s
      FROM clusters AS c LEFT JOIN heartbeats AS h ON h.cluster_id = c.id
"""
_CAPACITY = """
    SELECT c.cluster_id, k.resource, k.allocatable, k.reserved
      FROM capacity AS k JOIN clusters AS c ON c.id = k.cluster_id
"""
_LEASE = """
    SELECT extract(epoch FROM expires_at - now())::float8 FROM leases WHERE name = 'placement'
"""


@dataclass(frozen=True, slots=True)
class PlatformGauges:
    """Values at this moment."""

    runs: dict[str, int]
    """By state."""
    clusters: list[tuple[str, str, bool, float | None]]
    """cluster_id, kind, enabled, seconds of silence (None: never heard)."""
    capacity: list[tuple[str, str, int, int]]
    """cluster_id, resource, allocatable, reserved."""
    led: bool
    """A scheduler leads."""


async def platform_gauges(tx: Tx) -> PlatformGauges:
    """Read them: some rows for each cluster, however many runs there are."""
    left: float | None = await tx.fetchval(_LEASE)
    return PlatformGauges(
        runs={row["state"]: row["n"] for row in await tx.fetch(_RUNS)},
        clusters=[tuple(row.values()) for row in await tx.fetch(_CLUSTERS)],
        capacity=[tuple(row.values()) for row in await tx.fetch(_CAPACITY)],
        led=left is not None and left > 0,
    )
