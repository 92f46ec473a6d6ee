"""Join tokens, agents' keys, and the credentials that they fetch with them."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta

from verderer.store.database import Tx

_ADD_CLUSTER = """
    INSERT INTO clusters (cluster_id, kind) VALUES ($1, $2)
        ON CONFLICT (cluster_id) DO UPDATE
       SET retired_at = NULL, enabled = true
     WHERE clusters.kind = excluded.kind
 RETURNING id
"""
_ADD_TOKEN = """
    INSERT INTO join_tokens (cluster_id, token_hash, hint, created_by, expires_at)
    VALUES ($1, $2, $3, $4, now() + $5)
 RETURNING expires_at
"""
# One use: of two agents that come at the same time the row lock lets one through.
_USE = """
    UPDATE join_tokens AS t SET used_at = now(), used_from = $2
      FROM clusters AS c
     WHERE t.token_hash = $1 AND t.used_at IS NULL AND t.expires_at > now()
       AND c.id = t.cluster_id AND c.retired_at IS NULL
 RETURNING c.id, c.cluster_id, c.kind::text AS kind
"""
_TOKEN_STATE = """
    SELECT used_at IS NOT NULL AS used, expires_at <= now() AS expired
      FROM join_tokens WHERE token_hash = $1
"""
_FORGET_TOKENS = """
    DELETE FROM join_tokens WHERE cluster_id = $1 AND used_at IS NULL
 RETURNING expires_at > now() AS open
"""
_PUT_KEY = """
    INSERT INTO agent_keys (cluster_id, public_key, signed_ms) VALUES ($1, $2, $3)
        ON CONFLICT (cluster_id) DO UPDATE
       SET public_key = excluded.public_key, signed_ms = excluded.signed_ms, changed_at = now()
"""
_KEY = """
    SELECT c.id, k.public_key, k.changed_at
      FROM clusters AS c JOIN agent_keys AS k ON k.cluster_id = c.id
     WHERE c.cluster_id = $1 AND c.retired_at IS NULL
       FOR UPDATE OF k
"""
_SIGNED = """
    UPDATE agent_keys
       SET signed_ms = $2, public_key = $3,
           changed_at = CASE WHEN public_key = $3 THEN changed_at ELSE now() END
     WHERE cluster_id = $1 AND signed_ms < $2
 RETURNING cluster_id
"""
_ADD_CREDENTIAL = """
    INSERT INTO agent_credentials (token_hash, cluster_id, expires_at)
    VALUES ($2, $1, now() + $3)
"""
_EXPIRED = "DELETE FROM agent_credentials WHERE cluster_id = $1 AND expires_at <= now()"
_REVOKE = """
    WITH c AS (
             SELECT id, credential_hash FROM clusters
              WHERE cluster_id = $1 AND retired_at IS NULL FOR UPDATE),
         old AS (
             UPDATE clusters AS t SET credential_hash = NULL
               FROM c WHERE t.id = c.id AND t.credential_hash IS NOT NULL RETURNING 1),
         keys AS (DELETE FROM agent_keys AS k USING c WHERE k.cluster_id = c.id RETURNING 1),
         shown AS (
             DELETE FROM agent_credentials AS a USING c WHERE a.cluster_id = c.id RETURNING 1)
    SELECT c.id, (SELECT count(*) FROM old) + (SELECT count(*) FROM keys)
               + (SELECT count(*) FROM shown) AS n
      FROM c
"""
_RETIRE = """
    UPDATE clusters SET retired_at = now(), enabled = false
     WHERE cluster_id = $1 AND retired_at IS NULL RETURNING id
"""
_LIVE = """
    SELECT count(*) FROM attempts AS a JOIN clusters AS c ON c.id = a.cluster_id
     WHERE c.cluster_id = $1 AND a.ended_at IS NULL
"""
_NO_CAPACITY = "UPDATE capacity SET allocatable = 0, largest = 0 WHERE cluster_id = $1"


@dataclass(frozen=True, slots=True, kw_only=True)
class Joining:
    """The cluster that a join token opens."""

    id: int
    cluster_id: str
    kind: str


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentKey:
    """The public half of an agent's key, its row locked."""

    cluster: int
    public_key: bytes
    changed_at: datetime


async def add_cluster(tx: Tx, cluster_id: str, kind: str) -> int | None:
    """Make a cluster, or take a retired one of the same kind back in; None: of another kind."""
    found: int | None = await tx.fetchval(_ADD_CLUSTER, cluster_id, kind)
    return found


async def add_join_token(
    tx: Tx, cluster: int, token_hash: bytes, *, hint: str, by: str, life: timedelta
) -> datetime:
    """Keep a join token; when it runs out. Earlier ones that nobody used are gone."""
    await tx.execute(_FORGET_TOKENS, cluster)
    until: datetime = await tx.fetchval(_ADD_TOKEN, cluster, token_hash, hint, by, life)
    return until


async def use_join_token(tx: Tx, token_hash: bytes, origin: str) -> Joining | None:
    """Spend it; None when it is unknown, used or out of time."""
    row = await tx.fetchrow(_USE, token_hash, origin)
    return None if row is None else Joining(**dict(row))


async def join_token_state(tx: Tx, token_hash: bytes) -> str:
    """`used`, `expired`, `open`, or `unknown`."""
    row = await tx.fetchrow(_TOKEN_STATE, token_hash)
    if row is None:
        return "unknown"
    return "used" if row["used"] else "expired" if row["expired"] else "open"


async def put_key(tx: Tx, cluster: int, public_key: bytes, signed_ms: int) -> None:
    """The cluster's agent has this key from now on; an earlier one opens nothing more."""
    await tx.execute(_PUT_KEY, cluster, public_key, signed_ms)


async def key_of(tx: Tx, cluster_id: str) -> AgentKey | None:
    """The key by which the cluster's agent is known."""
    row = await tx.fetchrow(_KEY, cluster_id)
    if row is None:
        return None
    return AgentKey(cluster=row["id"], public_key=row["public_key"], changed_at=row["changed_at"])


async def note_signed(tx: Tx, cluster: int, signed_ms: int, public_key: bytes) -> bool:
    """Remember the newest signature, and the key from now on; False for one that is not newer."""
    return await tx.fetchval(_SIGNED, cluster, signed_ms, public_key) is not None


async def add_credential(tx: Tx, cluster: int, token_hash: bytes, life: timedelta) -> None:
    """Let a credential in for `life`; those whose time is over go."""
    await tx.execute(_EXPIRED, cluster)
    await tx.execute(_ADD_CREDENTIAL, cluster, token_hash, life)


async def drop_credentials(tx: Tx, cluster_id: str) -> tuple[int, int] | None:
    """Lock the cluster's agent out: its row id and how much was taken away. None: no cluster."""
    row = await tx.fetchrow(_REVOKE, cluster_id)
    return None if row is None else (row["id"], row["n"])


async def forget_join_tokens(tx: Tx, cluster: int) -> int:
    """Close every way in that nobody has used; how many were open."""
    return sum(row["open"] for row in await tx.fetch(_FORGET_TOKENS, cluster))


async def retire(tx: Tx, cluster_id: str) -> int | None:
    """Take the cluster out for good; its row id, or None when there is none."""
    found: int | None = await tx.fetchval(_RETIRE, cluster_id)
    if found is not None:
        await tx.execute(_NO_CAPACITY, found)
    return found


async def live_attempts(tx: Tx, cluster_id: str) -> int:
    """How many attempts are under way there, as far as anybody knows."""
    return int(await tx.fetchval(_LIVE, cluster_id))
