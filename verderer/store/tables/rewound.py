"""After a restore the database has gone back in time, on a server that counts from elsewhere."""

from __future__ import annotations

from verderer.store.database import Tx

# The queue is read by the number of the transaction that wrote a row, which another server began
# to count anew: a row of "the future" would be read again at every look.
_QUEUE = "UPDATE queue SET xid = pg_current_xact_id()"
# Whoever held something at the time of the backup, or since, is refused and asks for everything.
_CLUSTERS = "UPDATE clusters SET epoch = epoch + 1048576"
_LEASES = "UPDATE leases SET epoch = epoch + 1048576, expires_at = now()"


async def move_ahead(tx: Tx) -> None:
    """Make counters right for this server, and end what agents and schedulers hold."""
    for statement in (_QUEUE, _CLUSTERS, _LEASES):
        await tx.execute(statement)
