"""What of an attempt's output is in object storage: the chunks, in order."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from verderer.core.model.actor import Scope
from verderer.store.database import Tx

_CHUNKS = """
    SELECT l.replica, l.sequence, l.first_byte, l.size, l.lines, l.lost, l.first_at, l.last_at,
           l.sealed, l.complete
      FROM steps AS s
      JOIN runs AS r ON r.id = s.run_id
      JOIN log_chunks AS l ON l.step_id = s.id
     WHERE s.run_id = $1 AND ($2 OR r.project_id = ANY($3::int[])) AND s.idx = $4
       AND l.number = $5 AND l.replica = $6 AND l.sequence >= $7
     ORDER BY l.sequence LIMIT $8
"""

_REPLICAS = """
    SELECT l.replica, count(*)::int AS chunks, sum(l.size)::bigint AS size,
           sum(l.lines)::bigint AS lines, sum(l.lost)::bigint AS lost,
           bool_or(l.complete) AS complete
      FROM steps AS s
      JOIN runs AS r ON r.id = s.run_id
      JOIN log_chunks AS l ON l.step_id = s.id
     WHERE s.run_id = $1 AND ($2 OR r.project_id = ANY($3::int[])) AND s.idx = $4
       AND l.number = $5
     GROUP BY l.replica ORDER BY l.replica
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class LogChunk:
    """A piece of one replica's output; an unsealed one still grows under the same key."""

    replica: int
    sequence: int
    first_byte: int
    size: int
    """Raw bytes."""
    lines: int
    lost: int
    """Bytes lost inside or before this chunk."""
    first_at: datetime | None
    last_at: datetime | None
    sealed: bool
    complete: bool
    """Nothing of this replica follows."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplicaLog:
    """How much output one replica of an attempt has left so far."""

    replica: int
    chunks: int
    size: int
    lines: int
    lost: int
    complete: bool


async def list_log_chunks(
    tx: Tx,
    scope: Scope,
    run: int,
    idx: int,
    number: int,
    replica: int = 0,
    *,
    from_sequence: int = 0,
    limit: int = 100_000,
) -> list[LogChunk]:
    """Chunks of one replica of one attempt, from `from_sequence` on."""
    rows = await tx.fetch(
        _CHUNKS,
        run,
        scope.everything,
        list(scope.projects),
        idx,
        number,
        replica,
        from_sequence,
        limit,
    )
    return [LogChunk(**dict(row)) for row in rows]


async def list_replicas(tx: Tx, scope: Scope, run: int, idx: int, number: int) -> list[ReplicaLog]:
    """What each replica of the attempt has written so far."""
    rows = await tx.fetch(_REPLICAS, run, scope.everything, list(scope.projects), idx, number)
    return [ReplicaLog(**dict(row)) for row in rows]
