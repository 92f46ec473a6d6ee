"""A cluster that is cut off gets nothing, keeps what it has, and is believed when it is back."""

from __future__ import annotations

import pytest

from tests.usecases.test_run_life import ONE
from tests.usecases.world import ADMIN, OK, World, failed
from verderer.core.errors import Conflict
from verderer.core.model.attempt import AttemptKey, AttemptState, End, EndCause
from verderer.store.database import Database
from verderer.store.views.steps import Shown, list_attempts
from verderer.usecases.cancel_run import cancel
from verderer.usecases.enrolment.declare_lost import declare_lost
from verderer.usecases.enrolment.expel import retire_cluster

RUNNING = AttemptState.RUNNING
CANCELLED = End(cause=EndCause.CANCELLED)
LOST = End(cause=EndCause.LOST)


@pytest.fixture
async def world(database: Database) -> World:
    world = await World.make(database)
    await world.add_cluster("other", {"cpu": 4000, "memory": 8 << 30})
    return world


async def _silence(world: World, name: str) -> None:
    async with world.ctx.db.transaction() as tx:
        await tx.execute(
            "UPDATE heartbeats SET seen_at = now() - interval '5 minutes' WHERE cluster_id = $1",
            world.agents[name].id,
        )


async def _running(world: World) -> tuple[int, AttemptKey, str]:
    """A run, its attempt and the cluster that runs it, which is then cut off."""
    run = (await world.submit(ONE)).run
    assert (await world.place()).placed == 1
    key = AttemptKey(run, 0, 1)
    async with world.ctx.db.reading() as tx:
        (attempt,) = await list_attempts(tx, ADMIN.scope, run, 0)
    await world.report(key, RUNNING, name=attempt.cluster_id)
    await _silence(world, attempt.cluster_id)
    return run, key, attempt.cluster_id


async def _shown(world: World, run: int) -> list[Shown]:
    async with world.ctx.db.reading() as tx:
        return [a.shown for a in await list_attempts(tx, ADMIN.scope, run, 0)]


async def test_a_silent_cluster_gets_no_work(world: World) -> None:
    await _silence(world, "local")
    await _silence(world, "other")
    run = (await world.submit(ONE)).run
    assert (await world.place()).placed == 0
    assert await world.step_states(run) == {"only": "ready"}


async def test_work_of_a_silent_cluster_is_unknown_and_not_started_elsewhere(world: World) -> None:
    run, _, _ = await _running(world)
    assert await _shown(world, run) == [Shown.UNKNOWN]
    await world.lead()
    assert (await world.place()).placed == 0
    assert await _shown(world, run) == [Shown.UNKNOWN]
    assert await world.reserved() == {"cpu": 500, "memory": 64 << 20}


@pytest.mark.parametrize(
    ("end", "shown", "state"),
    [
        pytest.param(None, Shown.RUNNING, "running", id="it still runs"),
        pytest.param(OK, Shown.SUCCEEDED, "succeeded", id="it succeeded meanwhile"),
        pytest.param(failed(3), Shown.FAILED, "failed", id="it failed meanwhile"),
    ],
)
async def test_an_agent_that_is_back_is_believed(
    world: World, end: End | None, shown: Shown, state: str
) -> None:
    run, key, name = await _running(world)
    await world.hello(name)
    assert await world.report(key, end or RUNNING, name=name) == {}
    assert await _shown(world, run) == [shown]
    assert await world.run_state(run) == state


async def test_what_is_gone_when_the_agent_is_back_was_lost(world: World) -> None:
    run, key, name = await _running(world)
    await world.hello(name)
    await world.report(key, LOST, name=name)
    assert (await _shown(world, run))[0] is Shown.LOST


@pytest.mark.parametrize(
    ("end", "shown"),
    [
        pytest.param(CANCELLED, Shown.CANCELLED, id="stopped on return"),
        pytest.param(OK, Shown.SUCCEEDED, id="it had ended by itself"),
    ],
)
async def test_a_cancel_during_the_cut_is_kept_until_the_agent_confirms(
    world: World, end: End, shown: Shown
) -> None:
    run, key, name = await _running(world)
    await cancel(world.ctx, ADMIN, run)
    assert await world.run_state(run) == "cancelling"
    assert await _shown(world, run) == [Shown.UNKNOWN]
    assert await world.reserved() == {"cpu": 500, "memory": 64 << 20}
    await world.hello(name)
    (order,) = await world.orders(name)
    assert order.key == key
    assert order.begin is None, "the agent is told to end it"
    await world.report(key, end, name=name)
    assert await _shown(world, run) == [shown]
    assert await world.run_state(run) == "cancelled"
    assert await world.reserved() == {}


RETRIED = """
metadata: {name: r, project: demo}
steps:
- {name: only, retries: 1, command: ["true"]}
"""


async def test_what_a_lost_cluster_ran_is_given_up_and_tried_elsewhere(world: World) -> None:
    run = (await world.submit(RETRIED)).run
    assert (await world.place()).placed == 1
    key = AttemptKey(run, 0, 1)
    async with world.ctx.db.reading() as tx:
        (attempt,) = await list_attempts(tx, ADMIN.scope, run, 0)
    name = attempt.cluster_id
    await world.report(key, RUNNING, name=name)
    with pytest.raises(Conflict) as heard:
        await declare_lost(world.ctx, ADMIN, name)
    assert heard.value.code == "cluster_heard"
    await _silence(world, name)
    with pytest.raises(Conflict):
        await retire_cluster(world.ctx, ADMIN, name)
    assert await declare_lost(world.ctx, ADMIN, name) == 1
    async with world.ctx.db.reading() as tx:
        (first, *_) = await list_attempts(tx, ADMIN.scope, run, 0)
    assert (first.state, first.cause) == (AttemptState.LOST, EndCause.LOST)
    assert ADMIN.name in first.message
    async with world.ctx.db.transaction() as tx:  # the pause before the second attempt is over
        await tx.execute("UPDATE queue SET not_before = NULL, xid = pg_current_xact_id()")
    assert (await world.place()).placed == 1
    async with world.ctx.db.reading() as tx:
        (_, second) = await list_attempts(tx, ADMIN.scope, run, 0)
    assert second.cluster_id != name
    with pytest.raises(Conflict) as stale:
        await world.report(key, OK, name=name)
    assert stale.value.code == "stale_epoch", "its session ended: it has to ask for everything"
    await world.hello(name)
    assert await world.orders(name) == []
    refused = await world.report(key, AttemptState.SUCCEEDED, OK, name=name)
    assert not refused, "it is passed over: the attempt is over"
    await _silence(world, name)
    assert await declare_lost(world.ctx, ADMIN, name) == 0
    await retire_cluster(world.ctx, ADMIN, name)


async def test_a_cluster_whose_agent_is_locked_out_gets_no_work_at_once(world: World) -> None:
    for name in ("local", "other"):
        async with world.ctx.db.transaction() as tx:
            await tx.execute(
                "UPDATE clusters SET credential_hash = NULL WHERE cluster_id = $1", name
            )
    await world.submit(ONE)
    assert (await world.place()).placed == 0
