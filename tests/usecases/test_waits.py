"""Why clusters let attempts wait is kept as long as it is true, and written when it changes."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.usecases.test_run_life import ONE
from tests.usecases.world import ADMIN, OK, World
from verderer.api.agents import translate
from verderer.core.errors import Conflict
from verderer.core.model.attempt import AttemptKey, AttemptState
from verderer.core.model.waiting import Pending, Waiting
from verderer.store.database import Database
from verderer.store.views.why import OnCluster, stuck_steps
from verderer.usecases.agents.receive_waits import receive_waits
from verderer.wire.agent import Report, WaitFact

FULL = Waiting(code=Pending.QUOTA, message="exceeded quota: full", numbers={"limited pods": 5})


@pytest.fixture
async def world(database: Database) -> World:
    return await World.make(database)


async def _placed(world: World) -> AttemptKey:
    run = (await world.submit(ONE)).run
    assert (await world.place()).placed == 1
    return AttemptKey(run, 0, 1)


async def _tell(world: World, key: AttemptKey, waits: Waiting | None, *, epoch: int = 0) -> None:
    epoch = epoch or world.epochs["local"]
    await receive_waits(world.ctx, world.agents["local"], epoch=epoch, told={key: waits})


async def _there(world: World, run: int) -> OnCluster | None:
    async with world.ctx.db.reading() as tx:
        found = await stuck_steps(tx, ADMIN.scope, run)
    return found[0].on_cluster if found else None


async def _version(world: World) -> list[object]:
    async with world.ctx.db.reading() as tx:
        return [tuple(row) for row in await tx.fetch("SELECT xmin::text FROM attempt_waits")]


async def test_a_placed_step_is_explained_until_it_runs(world: World) -> None:
    key = await _placed(world)
    there = await _there(world, key.run)
    assert there is not None
    assert (there.state, there.waits) == (AttemptState.ASSIGNED, None)
    await world.report(key, AttemptState.STARTING)
    await _tell(world, key, FULL)
    there = await _there(world, key.run)
    assert there is not None
    assert (there.state, there.waits) == (AttemptState.STARTING, FULL)
    await world.report(key, AttemptState.RUNNING)
    assert await _there(world, key.run) is None


async def test_the_same_again_writes_nothing_and_keeps_its_time(world: World) -> None:
    key = await _placed(world)
    await _tell(world, key, FULL)
    before, since = await _version(world), await _there(world, key.run)
    await _tell(world, key, FULL)
    assert await _version(world) == before
    other = Waiting(code=FULL.code, message="exceeded quota: fuller", numbers=FULL.numbers)
    await _tell(world, key, other)
    now = await _there(world, key.run)
    assert now is not None
    assert since is not None
    assert (now.waits, now.since) == (other, since.since)
    await _tell(world, key, Waiting(code=Pending.IMAGE, hopeless=True))
    later = await _there(world, key.run)
    assert later is not None
    assert later.since > now.since


async def test_that_it_waits_no_more_removes_the_reason(world: World) -> None:
    key = await _placed(world)
    await _tell(world, key, FULL)
    await _tell(world, key, None)
    there = await _there(world, key.run)
    assert there is not None
    assert there.waits is None


async def test_what_has_begun_or_is_another_clusters_gets_no_reason(world: World) -> None:
    key = await _placed(world)
    await world.add_cluster("other", {"cpu": 1000})
    await receive_waits(
        world.ctx, world.agents["other"], epoch=world.epochs["other"], told={key: FULL}
    )
    assert await _version(world) == []
    await world.report(key, AttemptState.RUNNING)
    await _tell(world, key, FULL)
    await world.report(key, OK)
    await _tell(world, key, FULL)
    assert await _version(world) == []


async def test_an_older_session_is_not_listened_to(world: World) -> None:
    key, old = await _placed(world), world.epochs["local"]
    await world.hello()
    with pytest.raises(Conflict):
        await _tell(world, key, FULL, epoch=old)
    assert await _version(world) == []


def test_an_older_agent_says_nothing_of_it_and_an_older_server_does_not_mind() -> None:
    old = msgspec.msgpack.encode({"epoch": 3, "attempts": []})
    assert msgspec.msgpack.decode(old, type=Report).waits == []

    class Older(msgspec.Struct):
        epoch: int
        nodes: list[object] | None = None

    new = msgspec.msgpack.encode(Report(epoch=3, waits=[WaitFact(key="x", code="image")]))
    assert msgspec.msgpack.decode(new, type=Older).epoch == 3


@given(
    code=st.text(max_size=30),
    message=st.text(max_size=3000),
    numbers=st.dictionaries(st.text(max_size=200), st.integers(), max_size=80),
)
def test_whatever_an_agent_says_can_be_kept(
    code: str, message: str, numbers: dict[str, int]
) -> None:
    key = AttemptKey(1, 2, 3)
    told = translate.wait(WaitFact(key=str(key), code=code, message=message, numbers=numbers))
    assert told is not None
    assert told[0] == key
    waits = told[1]
    assert (waits is None) == (code == "")
    if waits is not None:
        assert len(waits.message) <= 2000
        assert "\x00" not in waits.message
        assert len(waits.numbers) <= 50
    assert translate.wait(WaitFact(key=code)) is None
