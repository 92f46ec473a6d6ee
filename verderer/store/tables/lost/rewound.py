"""After a restore the database has gone back in time, on a server that counts from elsewhere."""

from __future__ import annotations

from verderer.store.database import Row, Tx

# The queue is read by the number of the transaction that wrote a row, which another server began
# to count anew: a row of "the future" would be read again at every look.
_QUEUE = "UPDATE queue SET xid = pg_current_xact_id()"
# Whoever held something at the time of the backup, or since, is refused and asks for everything.
# Nobody knows what agents were told since the backup: no promise covers what they run.
_CLUSTERS = """
    UPDATE clusters SET epoch = epoch + 1048576, stops_within_s = NULL, promised_since = NULL
"""
_LEASES = "UPDATE leases SET epoch = epoch + 1048576, expires_at = now()"
_LIVE = """
    SELECT c.id, c.epoch, s.run_id, s.idx, a.number
      FROM clusters AS c
      JOIN attempts AS a ON a.cluster_id = c.id
       AND a.state IN ('assigned', 'starting', 'running', 'stopping')
      JOIN steps AS s ON s.id = a.step_id
     WHERE c.cluster_id = $1
     ORDER BY s.run_id, s.idx
"""


async def live_on(tx: Tx, cluster_id: str) -> list[Row]:
    """What the database believes to be alive there, with the cluster's row id and epoch."""
    return list(await tx.fetch(_LIVE, cluster_id))


async def move_ahead(tx: Tx) -> None:
    """Make counters right for this server, and end what agents and schedulers hold."""
    for statement in (_QUEUE, _CLUSTERS, _LEASES):
        await tx.execute(statement)
