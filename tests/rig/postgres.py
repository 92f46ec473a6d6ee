"""The PostgreSQL that tests use: one throw-away server for each pytest process.

`VERDERER_TEST_DATABASE_URL` names a server to use instead; its role must be a superuser. Each
pytest process makes a database of its own there and drops it at the end.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterator
from contextlib import contextmanager
from urllib.parse import urlsplit, urlunsplit

import asyncpg

from tests.rig.folders import reachable_folder
from verderer.store.embedded.launcher import EmbeddedPostgres, Launch

UNSAFE = {"fsync": "off", "full_page_writes": "off", "synchronous_commit": "off"}
"""For servers whose data nobody will miss; a test of durability must not use it."""

GIVEN = "VERDERER_TEST_DATABASE_URL"


@contextmanager
def own_database() -> Iterator[str]:
    """The address of an empty database that belongs to this process alone."""
    if given := os.environ.get(GIVEN):
        with _database_on(given) as dsn:
            yield dsn
    else:
        with reachable_folder() as folder, EmbeddedPostgres(folder, Launch(options=UNSAFE)) as own:
            yield own.dsn


@contextmanager
def _database_on(server: str) -> Iterator[str]:
    name = f"verderer_test_{os.environ.get('PYTEST_XDIST_WORKER', 'main')}_{os.getpid()}"
    asyncio.run(_execute(server, f"CREATE DATABASE {name}"))
    try:
        yield urlunsplit(urlsplit(server)._replace(path=f"/{name}"))
    finally:
        asyncio.run(_execute(server, f"DROP DATABASE {name} WITH (FORCE)"))


async def _execute(dsn: str, sql: str) -> None:
    connection = await asyncpg.connect(dsn, timeout=10)
    try:
        await connection.execute(sql)
    finally:
        await connection.close()
