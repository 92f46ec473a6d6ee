"""Whether this process can do its work, and which part is missing."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping

from verderer.core.errors import Fault
from verderer.store import migrate
from verderer.usecases.context import Context

PATIENCE_S = 2.0
OK = "ok"


async def check_readiness(ctx: Context) -> Mapping[str, str]:
    """What keeps each part from working, `ok` where nothing does."""
    try:
        async with asyncio.timeout(PATIENCE_S):
            async with ctx.db.reading() as connection:
                missing = await migrate.missing(connection)
    except (Fault, TimeoutError):
        return {"database": "does not answer", "schema": "unknown"}
    schema = f"lacks {len(missing)} migrations, {missing[0]} first" if missing else OK
    return {"database": OK, "schema": schema}
