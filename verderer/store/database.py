"""A pool of connections, and the one way to open a transaction.

Everything is READ COMMITTED: claims use SKIP LOCKED, and every update that depends on what was
read says so in its WHERE clause.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any, Self, TypeAlias

import asyncpg
import msgspec
from asyncpg.pool import PoolConnectionProxy

from verderer.core.errors import Conflict, Fault
from verderer.store.connecting import NOT_CONNECTED, not_connected

Tx: TypeAlias = "asyncpg.Connection[Any] | PoolConnectionProxy[Any]"
"""A connection inside a transaction: the only name for it outside this room."""

Row: TypeAlias = asyncpg.Record

_UNREACHABLE = (
    OSError,
    asyncpg.CannotConnectNowError,
    asyncpg.ConnectionDoesNotExistError,
    asyncpg.InterfaceError,
    asyncpg.TooManyConnectionsError,
    asyncpg.AdminShutdownError,
    asyncpg.CrashShutdownError,
    asyncpg.DiskFullError,
    asyncpg.OutOfMemoryError,
    asyncpg.DeadlockDetectedError,
    asyncpg.SerializationError,
    # Settings that were right once: the server's were changed meanwhile.
    asyncpg.InvalidAuthorizationSpecificationError,
    asyncpg.InvalidCatalogNameError,
    TimeoutError,
)


async def _prepare(connection: asyncpg.Connection[Any]) -> None:
    await connection.set_type_codec(
        "jsonb",
        schema="pg_catalog",
        encoder=_encode_jsonb,
        decoder=_decode_jsonb,
        format="binary",  # COPY takes no other
    )
    # xid8 comes as text otherwise, and the snapshot compares them.
    await connection.set_type_codec(
        "xid8", schema="pg_catalog", encoder=str, decoder=int, format="text"
    )


async def _as_it_is(_connection: object) -> None:
    """Nothing is left to take back: no statement of ours changes its session.

    What the pool does by itself is to ask the server, a trip for each transaction.
    """


def _encode_jsonb(value: object) -> bytes:
    return b"\x01" + msgspec.json.encode(value)


def _decode_jsonb(data: bytes) -> object:
    return msgspec.json.decode(data[1:])


class Database:
    """Owns the pool. Make it with `await Database.open(dsn)` and close it at the end."""

    def __init__(self, pool: asyncpg.Pool[Any], dsn: str, direct: str) -> None:
        self._pool = pool
        self._direct = direct
        self.dsn = dsn

    @classmethod
    async def open(
        cls, dsn: str, *, size: int = 8, application: str = "verderer", direct: str = ""
    ) -> Self:
        """Connect. `direct` is the address past a pooler, where `dsn` leads to one.

        Raises:
            Refusal: the address, the login or the database named in it is wrong.
            Fault: PostgreSQL cannot be reached.
        """
        try:
            pool = await asyncpg.create_pool(
                dsn,
                min_size=1,
                max_size=size,
                init=_prepare,
                reset=_as_it_is,
                command_timeout=60,
                timeout=10,
                max_inactive_connection_lifetime=600,
                server_settings={"application_name": application},
            )
        except NOT_CONNECTED as e:
            raise not_connected(e, dsn) from e
        return cls(pool, dsn, direct or dsn)

    async def close(self) -> None:
        """Let go of every connection; open transactions are rolled back after two seconds."""
        try:
            async with asyncio.timeout(2.0):
                await self._pool.close()
        except TimeoutError:
            self._pool.terminate()

    @asynccontextmanager
    async def transaction(self) -> AsyncIterator[Tx]:
        """Commit at the end, roll back on any exception.

        Raises:
            Fault: the connection was lost; whether a commit in flight happened is unknown, so
                what is inside must be safe to repeat.
            Conflict: a constraint of the schema was about to be broken; nothing was written.
        """
        try:
            async with self._pool.acquire(timeout=10) as connection, connection.transaction():
                yield connection
        except _UNREACHABLE as e:
            raise _fault(e) from e
        except asyncpg.IntegrityConstraintViolationError as e:
            raise Conflict(f"the database refuses it: {e}", code="constraint") from e

    @asynccontextmanager
    async def reading(self) -> AsyncIterator[Tx]:
        """A connection for single statements that change nothing: no BEGIN, no COMMIT."""
        try:
            async with self._pool.acquire(timeout=10) as connection:
                yield connection
        except _UNREACHABLE as e:
            raise _fault(e) from e

    async def ping(self) -> None:
        """Raise `Fault` unless PostgreSQL answers."""
        async with self.reading() as connection:
            await connection.fetchval("SELECT 1")

    @asynccontextmanager
    async def own_connection(self) -> AsyncIterator[asyncpg.Connection[Any]]:
        """A connection outside every pool, for LISTEN and NOTIFY."""
        try:
            connection = await asyncpg.connect(self._direct, timeout=10)
        except _UNREACHABLE as e:
            raise _fault(e) from e
        try:
            await _prepare(connection)
            yield connection
        finally:
            connection.terminate()


def _fault(e: BaseException) -> Fault:
    return Fault(
        f"PostgreSQL did not complete the request: {type(e).__name__}: {e}", retry_after_s=0.5
    )


def columns(rows: Sequence[Sequence[object]], width: int) -> list[tuple[object, ...]]:
    """Turn rows into the column arrays that `unnest` takes; `width` counts them when empty."""
    return list(zip(*rows, strict=True)) if rows else [()] * width
