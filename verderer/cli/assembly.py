"""Builds the parts of the control plane from settings, and refuses what waiting cannot mend."""

from __future__ import annotations

import asyncio
import os
import secrets
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta

import structlog

from verderer.cli.settling import settle_soon
from verderer.core.errors import Fault, Refusal
from verderer.core.version import VERSION
from verderer.objects.config import ObjectsConfig
from verderer.objects.store import ObjectStore
from verderer.settings import Settings
from verderer.store.database import Database
from verderer.store.wakeups import Wakeups
from verderer.usecases.context import Context
from verderer.usecases.readiness import check_readiness

RELEASE = f"/{VERSION}"
"""How the names of this release's connections to PostgreSQL end."""
_PATIENCE_S = 5.0
"""For the object store's first answer."""

log = structlog.get_logger(__name__)


def database_url(settings: Settings) -> str:
    """The address of PostgreSQL.

    Raises:
        Refusal: it is not known.
    """
    if settings.database.url is None:
        raise Refusal("database.url is not set", hint="Set it, or use `verderer up`.")
    return settings.database.url.reveal()


def direct_database_url(settings: Settings) -> str:
    """The address of PostgreSQL past a pooler, where there is one."""
    given = settings.database.direct_url
    return given.reveal() if given is not None else database_url(settings)


def secret_key(settings: Settings) -> bytes:
    """The instance's key.

    Raises:
        Refusal: it is not set.
    """
    if settings.security.secret_key is None:
        raise Refusal("security.secret_key is not set")
    return settings.security.secret_key.reveal().encode()


def objects_config(settings: Settings) -> ObjectsConfig:
    """Where objects are kept."""
    given = settings.objects
    return ObjectsConfig(
        url=settings.objects_url,
        endpoint=given.endpoint,
        region=given.region,
        access_key=given.access_key,
        secret_key=given.secret_key.reveal() if given.secret_key else "",
        allow_http=given.endpoint.startswith("http://"),
    )


def holder() -> str:
    """Names this process among those that compete for a lease."""
    return f"{socket.gethostname()}-{os.getpid()}-{secrets.token_hex(4)}"


@asynccontextmanager
async def open_context(settings: Settings, *, role: str) -> AsyncIterator[Context]:
    """The context of a role's process, its wake-ups running.

    Raises:
        Fault: PostgreSQL cannot be reached.
    """
    db = await Database.open(
        database_url(settings),
        size=settings.database.pool_size,
        application=f"verderer-{role}{RELEASE}",
        direct=direct_database_url(settings),
    )
    wakeups = Wakeups(db)
    context = Context(
        db=db,
        wakeups=wakeups,
        clock=lambda: datetime.now(UTC),
        chance=lambda: int.from_bytes(os.urandom(8), "big"),
        key=secret_key(settings),
        public_url=settings.public_url,
        session_life=timedelta(seconds=settings.security.session_s),
    )
    await wakeups.start()
    settle_soon()
    try:
        yield context
    finally:
        await wakeups.stop()
        await db.close()


async def check_schema(ctx: Context) -> None:
    """Look whether the database is of this release.

    Raises:
        Refusal: it lacks migrations, or was never set up.
    """
    schema = (await check_readiness(ctx))["schema"]
    if schema.startswith("lacks"):
        raise Refusal(f"the database {schema}", hint="Run `verderer migrate`.", code="schema")


async def check_store(store: ObjectStore) -> None:
    """Write, read and delete one small object.

    A store that is away or full is said in the log and no reason to stay away too: pages and
    placement do without it, and it comes back by itself.

    Raises:
        Refusal: the bucket is missing, or the credentials, rights or region are wrong.
    """
    try:
        async with asyncio.timeout(_PATIENCE_S):
            await store.probe()
    except TimeoutError:
        _warn(f"no answer within {_PATIENCE_S:.0f} s", "Check objects.endpoint and the network.")
    except Fault as e:
        if setting := e.detail.get("setting"):
            raise Refusal(f"{setting}: {e.message}", hint=e.hint, code="objects") from e
        _warn(e.message, e.hint)


def _warn(why: str, hint: str) -> None:
    log.warning("output and artifacts cannot be kept at the moment", why=why, hint=hint)
