"""What a database needs after it was brought back from a backup."""

from __future__ import annotations

import pytest

from tests.usecases.test_login import audit_of
from tests.usecases.world import World
from verderer.core.errors import VerdererError
from verderer.store.database import Database
from verderer.usecases.restored import note_restored

ONE = "metadata: {name: x}\nsteps:\n- {name: a, command: ['true']}\n"
FUTURE = """
    SELECT count(*) FROM queue WHERE xid >= pg_snapshot_xmax(pg_current_snapshot())
"""


async def test_nobody_goes_on_with_what_was_held_and_the_queue_is_of_this_server(
    database: Database,
) -> None:
    world = await World.make(database)
    await world.submit(ONE)
    async with database.transaction() as tx:
        await tx.execute("UPDATE queue SET xid = '99999999999'")
        assert await tx.fetchval(FUTURE) == 1
    await note_restored(world.ctx, {"objects": 3})
    async with database.reading() as tx:
        assert await tx.fetchval(FUTURE) == 0
    with pytest.raises(VerdererError):
        await world.orders()
    await world.hello()
    await world.orders()
    assert await audit_of(database, "installation.restored") == [("system:operator", "", "ok")]
