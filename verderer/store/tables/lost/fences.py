"""Fences: what agents promise, and which silent clusters' work is sure to have stopped."""

from __future__ import annotations

from datetime import datetime

import msgspec

from verderer.store.database import Row, Tx

# A promise that begins, or becomes shorter, does not cover what was started before. The moment is
# read while the cluster's row is held: whoever gave orders earlier has committed by then.
_PROMISE = """
    UPDATE clusters
       SET promised_since = CASE WHEN $2::float8 IS NULL THEN NULL
                                 WHEN stops_within_s <= $2 THEN promised_since
                                 ELSE clock_timestamp() END,
           stops_within_s = $2
     WHERE id = $1 AND stops_within_s IS DISTINCT FROM $2
"""
_LEASE = """
    SELECT coalesce(extract(epoch FROM now() - h.seen_at), 1e9)::float8
      FROM clusters AS c LEFT JOIN heartbeats AS h ON h.cluster_id = c.id
     WHERE c.id = $1 AND c.epoch = $2
       FOR KEY SHARE OF c
"""
# There are as many rows as clusters; what runs on them is only looked at once for each silence.
_DUE = """
    SELECT c.id, c.cluster_id AS name, c.epoch, c.stops_within_s, c.promised_since, h.seen_at,
           extract(epoch FROM now() - h.seen_at)::float8 AS silent_s
      FROM clusters AS c JOIN heartbeats AS h ON h.cluster_id = c.id
     WHERE c.promised_since IS NOT NULL
       AND c.fenced_seen_at IS DISTINCT FROM h.seen_at
       AND extract(epoch FROM now() - h.seen_at) > $1 + c.stops_within_s
     ORDER BY c.id
"""
_LIVE = """
    SELECT s.id AS step, s.run_id, s.idx, s.template, a.number, r.document,
           a.assigned_at >= $2 AS under_promise
      FROM attempts AS a
      JOIN steps AS s ON s.id = a.step_id
      JOIN runs AS r ON r.id = s.run_id
     WHERE a.cluster_id = $1 AND a.ended_at IS NULL AND a.step_id > $3
     ORDER BY a.step_id LIMIT $4
"""
# Only if it is as silent as it was: whoever came back meanwhile keeps its session.
_CLOSE = """
    UPDATE clusters AS c SET epoch = c.epoch + 1
     WHERE c.id = $1 AND c.epoch = $2
       AND NOT EXISTS (SELECT FROM heartbeats AS h
                        WHERE h.cluster_id = c.id AND h.seen_at > now() - $3::float8
                              * interval '1 second')
 RETURNING epoch
"""
_DONE = "UPDATE clusters SET fenced_seen_at = $2 WHERE id = $1"


class Silent(msgspec.Struct, frozen=True, kw_only=True):
    """A cluster that has been silent for longer than its agent needs to stop leased work."""

    id: int
    name: str
    epoch: int
    stops_within_s: float
    promised_since: datetime
    seen_at: datetime
    silent_s: float


async def promise(tx: Tx, cluster: int, stops_within_s: float | None) -> None:
    """Note what the session that begins promises; None: nothing."""
    await tx.execute(_PROMISE, cluster, stops_within_s)


async def silence_of(tx: Tx, cluster: int, epoch: int) -> float | None:
    """Seconds since the cluster was heard; None when `epoch` is not its current session."""
    found: float | None = await tx.fetchval(_LEASE, cluster, epoch)
    return found


async def due(tx: Tx, *, beyond_s: float) -> list[Silent]:
    """Clusters silent for `beyond_s` and what they promise, whose work is not given up yet."""
    return [Silent(**dict(row)) for row in await tx.fetch(_DUE, beyond_s)]


async def live_on(tx: Tx, silent: Silent, *, after: int, limit: int) -> list[Row]:
    """Attempts that have not ended there, by step from behind `after`."""
    return list(await tx.fetch(_LIVE, silent.id, silent.promised_since, after, limit))


async def done(tx: Tx, silent: Silent) -> None:
    """Everything that this silence allows is done."""
    await tx.execute(_DONE, silent.id, silent.seen_at)


async def close_session(tx: Tx, cluster: int, epoch: int, *, silent_s: float) -> int | None:
    """Refuse the session from now on, and return the epoch in whose name its work can be given up.

    An agent that comes back has to open another, asks for everything, and so learns what is not
    wanted any more. None: it has, or it was heard in the last `silent_s` seconds.
    """
    found: int | None = await tx.fetchval(_CLOSE, cluster, epoch, silent_s)
    return found
