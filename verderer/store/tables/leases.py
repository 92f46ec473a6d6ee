"""Leases: who leads, by the database's clock."""

from __future__ import annotations

from datetime import timedelta

from verderer.store.database import Tx

_TAKE = """
    INSERT INTO leases AS l (name, holder, epoch, expires_at)
    VALUES ($1, $2, 1, now() + $3)
        ON CONFLICT (name) DO UPDATE
       SET epoch = CASE WHEN l.holder = $2 AND l.expires_at > now()
                        THEN l.epoch ELSE l.epoch + 1 END,
           holder = $2, expires_at = now() + $3
     WHERE l.holder = $2 OR l.expires_at <= now()
 RETURNING epoch
"""
_GIVE_UP = "UPDATE leases SET expires_at = now() WHERE name = $1 AND holder = $2"


async def take(tx: Tx, name: str, holder: str, ttl: timedelta) -> int | None:
    """Take or renew a lease and return its epoch; None while somebody else holds it.

    The epoch rises whenever the lease was not held without a break by `holder`.
    """
    epoch: int | None = await tx.fetchval(_TAKE, name, holder, ttl)
    return epoch


async def give_up(tx: Tx, name: str, holder: str) -> None:
    """Let the next one in at once."""
    await tx.execute(_GIVE_UP, name, holder)
