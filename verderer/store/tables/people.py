"""Users, the sessions of their browsers and the tokens of their programs."""

from __future__ import annotations

from datetime import timedelta

import asyncpg

from verderer.core.errors import Conflict, NotFound
from verderer.core.model.people import ApiToken, Session, User
from verderer.store.database import Row, Tx

_USER = "id, email, name, platform_admin, active, must_change, language, created_at"
_LOCK = 7_205_759_403_792_795  # taken by whoever may leave the platform without an admin
_LOCK_ADMINS = "SELECT pg_advisory_xact_lock($1)"
_ANY_USER = "SELECT EXISTS (SELECT FROM users)"
_OTHER_ADMINS = "SELECT EXISTS (SELECT FROM users WHERE platform_admin AND active AND id <> $1)"
_ADD_USER = f"""
    INSERT INTO users (email, name, password_hash, platform_admin, must_change)
    VALUES ($1, $2, $3, $4, true)
 RETURNING {_USER}
"""  # noqa: S608 - a constant of this file
_BY_EMAIL = f"SELECT {_USER} FROM users WHERE email = $1"  # noqa: S608
_BY_ID = f"SELECT {_USER} FROM users WHERE id = $1"  # noqa: S608
_PASSWORD = "SELECT password_hash FROM users WHERE id = $1 AND active"
_SET_PASSWORD = """
    UPDATE users SET password_hash = $2, must_change = $3
     WHERE id = $1 AND ($4::text IS NULL OR password_hash = $4)
"""
_SET_ACTIVE = "UPDATE users SET active = $2 WHERE id = $1 AND active <> $2"
_SET_ADMIN = "UPDATE users SET platform_admin = $2 WHERE id = $1 AND platform_admin <> $2"
_SET_LANGUAGE = "UPDATE users SET language = $2 WHERE id = $1"

_ADD_SESSION = """
    INSERT INTO sessions (token_hash, user_id, expires_at, origin, agent)
    SELECT $1, id, now() + $3::interval, $4, $5 FROM users WHERE id = $2 AND active
"""
_SESSIONS = """
    SELECT left(encode(token_hash, 'hex'), 16) AS id, created_at, seen_at, expires_at, origin, agent
      FROM sessions
     WHERE user_id = $1 AND expires_at > now()
     ORDER BY seen_at DESC, token_hash
     LIMIT 200
"""
_END_SESSION = "DELETE FROM sessions WHERE token_hash = $1 RETURNING user_id"
_END_SESSION_BY_ID = """
    DELETE FROM sessions WHERE user_id = $1 AND left(encode(token_hash, 'hex'), 16) = $2
"""
_END_SESSIONS = "DELETE FROM sessions WHERE user_id = $1 AND token_hash IS DISTINCT FROM $2::bytea"
_FORGET_SESSIONS = "DELETE FROM sessions WHERE expires_at <= now()"

_TOKEN = "id, name, hint, read_only, created_at, expires_at, used_at, revoked_at"
_ADD_TOKEN = f"""
    INSERT INTO api_tokens (user_id, name, token_hash, hint, read_only, expires_at)
    SELECT id, $2, $3, $4, $5, now() + $6::interval FROM users WHERE id = $1 AND active
 RETURNING {_TOKEN}
"""  # noqa: S608
_TOKENS = f"""
    SELECT {_TOKEN} FROM api_tokens
     WHERE user_id = $1 AND revoked_at IS NULL AND ($2::int IS NULL OR id < $2)
     ORDER BY id DESC LIMIT $3
"""  # noqa: S608
_REVOKE = f"""
    UPDATE api_tokens SET revoked_at = now()
     WHERE user_id = $1 AND id = $2 AND revoked_at IS NULL
 RETURNING {_TOKEN}
"""  # noqa: S608
_REVOKE_ALL = "UPDATE api_tokens SET revoked_at = now() WHERE user_id = $1 AND revoked_at IS NULL"

_TRY = """
    INSERT INTO login_attempts AS a (key, since, n)
    SELECT key, now(), 1 FROM unnest($1::bytea[]) AS u (key) ORDER BY key
        ON CONFLICT (key) DO UPDATE
           SET since = CASE WHEN a.since <= now() - $2::interval THEN now() ELSE a.since END,
               n = CASE WHEN a.since <= now() - $2::interval THEN 1 ELSE least(a.n + 1, 10000) END
 RETURNING n, extract(epoch FROM since + $2::interval - now())::float8 AS wait_s
"""
_FORGIVE = """
    UPDATE login_attempts SET n = n - 1
     WHERE key IN (SELECT key FROM login_attempts
                    WHERE key = ANY($1::bytea[]) AND n > 0 ORDER BY key FOR UPDATE)
"""
_FORGET_TRIES = """
    DELETE FROM login_attempts
     WHERE key IN (SELECT key FROM login_attempts WHERE since <= now() - $1::interval
                    ORDER BY key LIMIT 100 FOR UPDATE SKIP LOCKED)
"""


# ---------------------------------------------------------------- users


async def lock_admins(tx: Tx) -> None:
    """Until the end of the transaction nobody else changes who is a platform admin."""
    await tx.execute(_LOCK_ADMINS, _LOCK)


async def any_user(tx: Tx) -> bool:
    """Whether this instance was set up before."""
    return bool(await tx.fetchval(_ANY_USER))


async def other_admins(tx: Tx, user: int) -> bool:
    """Whether an active platform admin remains when `user` is not counted."""
    return bool(await tx.fetchval(_OTHER_ADMINS, user))


async def add_user(
    tx: Tx, *, email: str, name: str, password_hash: str, platform_admin: bool
) -> User:
    """Insert somebody with a one-time password.

    Raises:
        Conflict: the e-mail address is taken.
    """
    try:
        row = await tx.fetchrow(_ADD_USER, email, name, password_hash, platform_admin)
    except asyncpg.UniqueViolationError as e:
        raise Conflict(f"there is a user {email} already") from e
    return _user(row)


async def user_by_email(tx: Tx, email: str) -> User:
    """Raise `NotFound` when there is none."""
    return _user(await tx.fetchrow(_BY_EMAIL, email))


async def user_by_id(tx: Tx, user: int) -> User:
    """Raise `NotFound` when there is none."""
    return _user(await tx.fetchrow(_BY_ID, user))


async def password_hash(tx: Tx, user: int) -> str | None:
    """None when `user` is unknown, deactivated or has no password."""
    value: str | None = await tx.fetchval(_PASSWORD, user)
    return value


async def set_password(
    tx: Tx, user: int, password_hash: str, *, must_change: bool, instead_of: str | None = None
) -> bool:
    """Return whether it was set: not when `instead_of` is given and no longer the present hash."""
    done = await tx.execute(_SET_PASSWORD, user, password_hash, must_change, instead_of)
    return done == "UPDATE 1"


async def set_active(tx: Tx, user: int, active: bool) -> bool:
    """Return whether that changed anything."""
    return await tx.execute(_SET_ACTIVE, user, active) == "UPDATE 1"


async def set_platform_admin(tx: Tx, user: int, admin: bool) -> bool:
    """Return whether that changed anything."""
    return await tx.execute(_SET_ADMIN, user, admin) == "UPDATE 1"


async def set_language(tx: Tx, user: int, language: str) -> None:
    await tx.execute(_SET_LANGUAGE, user, language)


# ---------------------------------------------------------------- sessions


async def add_session(
    tx: Tx, user: int, token_hash: bytes, *, life: timedelta, origin: str, agent: str
) -> bool:
    """Open one that ends when it was not used for `life`.

    Returns whether it was opened: not for a user who was deactivated meanwhile.
    """
    done = await tx.execute(_ADD_SESSION, token_hash, user, life, origin, agent)
    return done == "INSERT 0 1"


async def sessions_of(tx: Tx, user: int) -> list[Session]:
    """Those that still work, the one seen last first; at most 200."""
    return [Session(**row) for row in await tx.fetch(_SESSIONS, user)]


async def end_session(tx: Tx, token_hash: bytes) -> int | None:
    """Return whose session it was; None when there was none."""
    user: int | None = await tx.fetchval(_END_SESSION, token_hash)
    return user


async def end_session_by_id(tx: Tx, user: int, session: str) -> bool:
    """Return whether `user` had such a session."""
    return await tx.execute(_END_SESSION_BY_ID, user, session) != "DELETE 0"


async def end_sessions(tx: Tx, user: int, *, but: bytes | None = None) -> int:
    """End all sessions of `user`, except the one whose token's hash is `but`; return how many."""
    return _count(await tx.execute(_END_SESSIONS, user, but))


async def forget_sessions(tx: Tx) -> int:
    """Delete those whose time is over; return how many."""
    return _count(await tx.execute(_FORGET_SESSIONS))


# ---------------------------------------------------------------- tokens


async def add_token(
    tx: Tx, user: int, token_hash: bytes, *, name: str, hint: str, read_only: bool, life: timedelta
) -> ApiToken:
    """Raise `NotFound` for a user who is unknown or deactivated."""
    row = await tx.fetchrow(_ADD_TOKEN, user, name, token_hash, hint, read_only, life)
    if row is None:
        raise NotFound("no such user")
    return ApiToken(**row)


async def tokens_of(tx: Tx, user: int, *, before: int | None, limit: int) -> list[ApiToken]:
    """Those that were not revoked, the newest first, with ids below `before`."""
    return [ApiToken(**row) for row in await tx.fetch(_TOKENS, user, before, limit)]


async def revoke_token(tx: Tx, user: int, token: int) -> ApiToken:
    """Raise `NotFound` unless `user` has such a token that still works."""
    row = await tx.fetchrow(_REVOKE, user, token)
    if row is None:
        raise NotFound("no such token")
    return ApiToken(**row)


async def revoke_tokens(tx: Tx, user: int) -> int:
    """Revoke all of `user`; return how many."""
    return _count(await tx.execute(_REVOKE_ALL, user))


# ---------------------------------------------------------------- attempts to log in


async def count_try(tx: Tx, keys: list[bytes], *, window: timedelta) -> tuple[int, float]:
    """Count one more attempt under each key.

    Returns the highest count of this window and the seconds until that key's window ends.
    """
    await tx.execute(_FORGET_TRIES, window)
    rows = await tx.fetch(_TRY, sorted(keys), window)
    worst = max(rows, key=lambda row: (row["n"], row["wait_s"]))
    return worst["n"], worst["wait_s"]


async def forgive_try(tx: Tx, keys: list[bytes]) -> None:
    """Take one attempt back, since it succeeded."""
    await tx.execute(_FORGIVE, sorted(keys))


def _user(row: Row | None) -> User:
    if row is None:
        raise NotFound("no such user")
    return User(**row)


def _count(status: str) -> int:
    return int(status.rpartition(" ")[2])
