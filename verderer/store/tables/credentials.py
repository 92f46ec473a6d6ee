"""Who a credential belongs to: what every request asks first, so each is one statement."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from verderer.core.model.actor import Role
from verderer.core.model.attempt import AttemptKey
from verderer.store.database import Row, Tx

_WHO = """
       u.id, u.email, u.platform_admin, u.must_change, u.language,
       ARRAY(SELECT m.project_id FROM project_roles AS m
              WHERE m.user_id = u.id ORDER BY m.project_id) AS projects,
       ARRAY(SELECT m.role::text FROM project_roles AS m
              WHERE m.user_id = u.id ORDER BY m.project_id) AS roles
"""
_BY_SESSION = f"""
    SELECT {_WHO}, false AS read_only, s.seen_at < now() - interval '1 minute' AS stale
      FROM sessions AS s
      JOIN users AS u ON u.id = s.user_id AND u.active
     WHERE s.token_hash = $1 AND s.expires_at > now()
"""  # noqa: S608 - a constant of this file
_BY_TOKEN = f"""
    SELECT {_WHO}, t.read_only,
           t.used_at IS NULL OR t.used_at < now() - interval '1 minute' AS stale
      FROM api_tokens AS t
      JOIN users AS u ON u.id = t.user_id AND u.active
     WHERE t.token_hash = $1 AND t.revoked_at IS NULL
       AND (t.expires_at IS NULL OR t.expires_at > now())
"""  # noqa: S608
# A session that is used lives on, by its own idle time, and for 90 days at most.
_SEEN = """
    UPDATE sessions
       SET seen_at = now(),
           expires_at = least(now() + (expires_at - seen_at), created_at + interval '90 days')
     WHERE token_hash = $1 AND seen_at < now() - interval '1 minute'
"""
_USED = """
    UPDATE api_tokens SET used_at = now()
     WHERE token_hash = $1 AND (used_at IS NULL OR used_at < now() - interval '1 minute')
"""
_BY_AGENT = """
    SELECT id, cluster_id FROM clusters WHERE credential_hash = $1
     UNION ALL
    SELECT c.id, c.cluster_id
      FROM agent_credentials AS a JOIN clusters AS c ON c.id = a.cluster_id
     WHERE a.token_hash = $1 AND a.expires_at > now()
"""
_LIVE = """
    SELECT EXISTS (
        SELECT FROM runs AS r
          JOIN steps AS s ON s.run_id = r.id
          JOIN attempts AS a ON a.step_id = s.id
         WHERE r.id = $1 AND r.project_id = $4 AND s.idx = $2 AND a.number = $3
           AND a.state IN ('assigned', 'starting', 'running', 'stopping'))
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Holder:
    """The active user that a credential belongs to."""

    id: int
    email: str
    platform_admin: bool
    must_change: bool
    language: str
    roles: Mapping[int, Role]
    read_only: bool
    stale: bool
    """When the credential was last used is worth writing down again."""


async def by_session(tx: Tx, token_hash: bytes) -> Holder | None:
    """Who is logged in with it, unless it ended."""
    return _holder(await tx.fetchrow(_BY_SESSION, token_hash))


async def by_token(tx: Tx, token_hash: bytes) -> Holder | None:
    """Whose token it is, unless it was revoked or its time is over."""
    return _holder(await tx.fetchrow(_BY_TOKEN, token_hash))


async def session_seen(tx: Tx, token_hash: bytes) -> None:
    """Write down that it is in use, at most once a minute."""
    await tx.execute(_SEEN, token_hash)


async def token_used(tx: Tx, token_hash: bytes) -> None:
    """Write down that it is in use, at most once a minute."""
    await tx.execute(_USED, token_hash)


async def by_agent(tx: Tx, token_hash: bytes) -> tuple[int, str] | None:
    """The cluster's row id and its `cluster_id`."""
    row = await tx.fetchrow(_BY_AGENT, token_hash)
    return None if row is None else (row["id"], row["cluster_id"])


async def attempt_lives(tx: Tx, attempt: AttemptKey, *, project: int) -> bool:
    """Whether the attempt is in `project` and not over."""
    return bool(await tx.fetchval(_LIVE, attempt.run, attempt.step, attempt.number, project))


def _holder(row: Row | None) -> Holder | None:
    if row is None:
        return None
    roles = {p: Role(r) for p, r in zip(row["projects"], row["roles"], strict=True)}
    names = ("id", "email", "platform_admin", "must_change", "language", "read_only", "stale")
    return Holder(roles=roles, **{name: row[name] for name in names})
