"""A look at schema and object store before work begins: what waiting cannot mend is refused."""

from __future__ import annotations

import asyncio
from typing import Final

import structlog

from verderer.core.errors import Fault, Refusal
from verderer.objects.store import ObjectStore
from verderer.usecases.context import Context
from verderer.usecases.readiness import check_readiness

_PATIENCE_S: Final = 5.0

log = structlog.get_logger(__name__)


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
