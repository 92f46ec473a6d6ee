"""What a database needs after it was brought back from a backup."""

from __future__ import annotations

import pytest

from tests.usecases.test_login import audit_of
from tests.usecases.world import World
from verderer.core.errors import VerdererError
from verderer.store.database import Database
from verderer.usecases.restored import give_up_attempts, note_restored

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


async def test_what_a_lost_machine_ran_is_given_up_and_waits_for_another_attempt(
    database: Database,
) -> None:
    world = await World.make(database)
    made = await world.submit(ONE.replace("name: a,", "name: a, retries: 1,"))
    await world.place()
    [_] = await world.orders()
    await note_restored(world.ctx, {})
    assert await give_up_attempts(world.ctx, "local") == 1
    assert await give_up_attempts(world.ctx, "local") == 0
    assert await world.reserved() == {}
    await world.hello()
    assert await world.orders() == []
    assert await world.step_states(made.run) == {"a": "ready"}
    async with database.reading() as tx:
        query = "SELECT state::text FROM attempts ORDER BY number"
        assert [row["state"] for row in await tx.fetch(query)] == ["lost"]
