"""The database of these settings, running: somebody else's, that of `verderer up`, or our own."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

from verderer.cli.assembly import direct_database_url
from verderer.core.errors import Conflict
from verderer.settings import Secret, Settings
from verderer.store.embedded.launcher import EmbeddedPostgres, Launch, dsn_at


@contextmanager
def reachable_database(settings: Settings) -> Iterator[Settings]:
    """The same settings with the address; an embedded server that nobody runs is run meanwhile."""
    if settings.database.url is not None:
        yield replace(
            settings,
            database=replace(settings.database, url=Secret(direct_database_url(settings))),
        )
        return
    launch = Launch(bin=settings.postgres.bin, port=settings.postgres.port)
    server = EmbeddedPostgres(settings.postgres_dir, launch)
    try:
        server.start()
    except Conflict as e:
        if e.code != "postgres_running":
            raise
    try:
        address = Secret(dsn_at(settings.postgres_dir))
        yield replace(settings, database=replace(settings.database, url=address))
    finally:
        server.stop()
