"""Why PostgreSQL did not let us in, in words that name the remedy."""

from __future__ import annotations

import ssl
from typing import Final
from urllib.parse import urlsplit

import asyncpg

from verderer.core.errors import Fault, Refusal, VerdererError

OLDEST: Final = 150_000
"""The least `server_version_num` that we use the features of."""

_IN_URL: Final = "The address is the setting database.url, or VERDERER_DATABASE_URL."
_LOGIN = (asyncpg.InvalidPasswordError, asyncpg.InvalidAuthorizationSpecificationError)
_ADDRESS = (asyncpg.ClientConfigurationError, ValueError)

NOT_CONNECTED = (OSError, TimeoutError, ValueError, asyncpg.PostgresError, asyncpg.InterfaceError)
"""What a driver raises when no connection comes about."""


def not_connected(error: BaseException, dsn: str) -> VerdererError:
    """What to raise instead: a `Refusal` where only other settings help, else a `Fault`.

    Neither holds the password.
    """
    place, database, role = _parts(dsn)
    if isinstance(error, _LOGIN):
        return Refusal(
            f"PostgreSQL at {place} does not let {role} in: {error}",
            hint=f"Check user and password, and pg_hba.conf there. {_IN_URL}",
            code="database_login",
        )
    if isinstance(error, asyncpg.InvalidCatalogNameError):
        return Refusal(
            f"PostgreSQL at {place} has no database {database}",
            hint=f"CREATE DATABASE {database} OWNER {role}; {_IN_URL}",
            code="database_missing",
        )
    if isinstance(error, ssl.SSLError) or "root certificate file" in str(error):
        why = " ".join(str(error).partition("\nHINT")[0].split())
        return Refusal(
            f"the certificate of PostgreSQL at {place} cannot be checked: {why}",
            hint="Name its authority's file: sslrootcert=FILE in database.url, or PGSSLROOTCERT.",
            code="database_certificate",
        )
    if isinstance(error, _ADDRESS):
        return Refusal(
            f"database.url cannot be used: {_without_secret(str(error), dsn)}",
            hint="It looks like postgresql://user:password@host:5432/name",
            code="database_url",
        )
    return Fault(
        f"PostgreSQL at {place} cannot be reached: {str(error) or type(error).__name__}",
        hint=f"Is it running, and may this machine connect to it? {_IN_URL}",
    )


def refuse_old(version: int, dsn: str) -> None:
    """Raise `Refusal` for a server of before 15; `version` is its `server_version_num`."""
    if version < OLDEST:
        place, _, _ = _parts(dsn)
        raise Refusal(
            f"PostgreSQL at {place} is version {version // 10_000}; 15 is the oldest that will do",
            hint=f"Upgrade it, or name another one. {_IN_URL}",
            code="database_old",
        )


def _parts(dsn: str) -> tuple[str, str, str]:
    """Where, which database and who, as far as the address says it readably."""
    try:
        parts = urlsplit(dsn)
        host, port = parts.hostname or "its socket", parts.port
    except ValueError:
        return "that address", "?", "?"
    place = f"{host}:{port}" if port else host
    return place, parts.path.strip("/") or "?", parts.username or "?"


def _without_secret(text: str, dsn: str) -> str:
    try:
        secret = urlsplit(dsn).password
    except ValueError:
        return "it cannot be taken apart"
    return text.replace(secret, "…") if secret else text
