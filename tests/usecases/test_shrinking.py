"""A cluster that shrinks while orders are being written."""

from __future__ import annotations

import pytest

from tests.usecases.world import World
from verderer.store.database import Database, Tx
from verderer.store.tables import orders

DOCUMENT = (
    "metadata: {name: one}\nsteps: [{name: a, command: [x], resources: {requests: {cpu: '2'}}}]\n"
)
SHRINK = "UPDATE capacity SET allocatable = 1000 WHERE resource = 'cpu'"


async def test_orders_that_lost_their_room_are_not_written_and_wait_again(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    world = await World.make(database, local={"cpu": 4000})
    made = await world.submit(DOCUMENT)
    whole = orders.take_room

    async def meanwhile(tx: Tx, applied: orders.Applied) -> None:
        assert len(applied.ordered) == 1
        async with database.transaction() as other:
            await other.execute(SHRINK)
        await whole(tx, applied)

    with monkeypatch.context() as patched:
        patched.setattr(orders, "take_room", meanwhile)
        done = await world.place()
    assert (done.placed, done.more) == (0, True)
    assert await world.orders() == []
    assert await world.reserved() == {}

    assert (await world.place()).placed == 0
    await world.nodes("local", {"cpu": 4000})
    assert (await world.place()).placed == 1
    assert await world.step_states(made.run) == {"a": "active"}
    assert await world.reserved() == {"cpu": 2000}
