"""What a lost cluster ran starts elsewhere: behind a fence, once, and never otherwise."""

from __future__ import annotations

import pytest

from tests.usecases.world import ADMIN, OK, World, failed
from verderer.core.errors import Conflict
from verderer.core.explain import Why
from verderer.core.fencing import LEASE_S, fence_s
from verderer.core.model.attempt import AttemptKey, AttemptState, End, EndCause
from verderer.store.database import Database
from verderer.store.tables.lost import fences, rewound
from verderer.store.views.steps import AttemptRow, list_attempts
from verderer.store.views.why import stuck_steps
from verderer.usecases.agents.agent_session import heard
from verderer.usecases.agents.fence import fence_silent
from verderer.usecases.agents.hand_out_orders import hand_out
from verderer.usecases.agents.heartbeats import Heartbeats
from verderer.usecases.cancel_run import cancel
from verderer.usecases.clusters import set_cluster_enabled
from verderer.usecases.explain_silence import explain_silence

STOPS = 45.0
BOUND = fence_s(STOPS)
RERUN = """
metadata: {name: r, project: demo}
steps:
- {name: only, onClusterLost: rerun, command: ["true"]}
"""
WAITS = """
metadata: {name: w, project: demo}
onClusterLost: rerun
steps:
- {name: only, onClusterLost: wait, command: ["true"]}
"""
RUNNING = AttemptState.RUNNING


@pytest.fixture
async def world(database: Database) -> World:
    world = await World.make(database)
    await world.add_cluster("other", {"cpu": 4000, "memory": 8 << 30})
    for name in ("local", "other"):
        await world.hello(name, stops_within_s=STOPS)
    return world


async def _silence(world: World, name: str, seconds: float) -> None:
    async with world.ctx.db.transaction() as tx:
        await tx.execute(
            "UPDATE heartbeats SET seen_at = now() - $2::float8 * interval '1 second' "
            "WHERE cluster_id = $1",
            world.agents[name].id,
            seconds,
        )


async def _attempts(world: World, run: int) -> list[AttemptRow]:
    async with world.ctx.db.reading() as tx:
        return list(await list_attempts(tx, ADMIN.scope, run, 0))


async def _running(world: World, document: str = RERUN) -> tuple[int, AttemptKey, str]:
    run = (await world.submit(document)).run
    assert (await world.place()).placed == 1
    (attempt,) = await _attempts(world, run)
    key = AttemptKey(run, 0, 1)
    await world.report(key, RUNNING, name=attempt.cluster_id)
    return run, key, attempt.cluster_id


async def _pause_over(world: World) -> None:
    async with world.ctx.db.transaction() as tx:
        await tx.execute("UPDATE queue SET not_before = NULL, xid = pg_current_xact_id()")


async def _why(world: World, run: int) -> tuple[Why, float] | None:
    async with world.ctx.db.reading() as tx:
        (step,) = await stuck_steps(tx, ADMIN.scope, run, 0)
        found = await explain_silence(world.ctx, tx, step)
    return None if found is None else (found.why, found.seconds)


async def test_it_starts_elsewhere_once_the_fence_has_passed(world: World) -> None:
    run, _, name = await _running(world)
    await _silence(world, name, BOUND - 5)
    assert await fence_silent(world.ctx) == 0
    why, left_s = await _why(world, run) or (None, 0.0)
    assert why is Why.FENCE
    assert 3 < left_s <= 5
    await _silence(world, name, BOUND + 1)
    assert await fence_silent(world.ctx) == 1
    assert await world.reserved() == {}
    await _pause_over(world)
    assert (await world.place()).placed == 1
    first, second = await _attempts(world, run)
    assert (first.state, first.cause) == (AttemptState.LOST, EndCause.LOST)
    assert "was silent for" in first.message
    assert second.cluster_id not in ("", name)
    async with world.ctx.db.reading() as tx:
        assert await tx.fetchval("SELECT failures FROM steps WHERE run_id = $1", run) == 0
        found = await tx.fetchval(
            "SELECT count(*) FROM audit WHERE run_id = $1 AND action = 'attempt.lost'", run
        )
    assert found == 1


@pytest.mark.parametrize(
    "late",
    [
        pytest.param(OK, id="it had finished"),
        pytest.param(failed(3), id="it had failed"),
        pytest.param(RUNNING, id="it still runs, whatever was promised"),
        pytest.param(End(cause=EndCause.LOST), id="it was stopped, or is gone"),
        pytest.param(End(cause=EndCause.CANCELLED), id="it is stopped on return"),
    ],
)
async def test_a_late_report_changes_nothing_but_is_taken(
    world: World, late: End | AttemptState
) -> None:
    run, key, name = await _running(world)
    await _silence(world, name, BOUND + 1)
    await fence_silent(world.ctx)
    await _pause_over(world)
    assert (await world.place()).placed == 1
    await world.hello(name, stops_within_s=STOPS)
    assert [o.key for o in await world.orders(name)] == [], "its agent stops what still runs"
    assert await world.report(key, late, name=name) == {}
    first, second = await _attempts(world, run)
    assert first.state is AttemptState.LOST
    assert not second.state.over
    assert await world.step_states(run) == {"only": "active"}
    await world.report(AttemptKey(run, 0, 2), RUNNING, OK, name=second.cluster_id)
    assert await world.run_state(run) == "succeeded"


@pytest.mark.parametrize(
    ("end", "state"),
    [
        pytest.param(RUNNING, "running", id="still running"),
        pytest.param(OK, "succeeded", id="finished"),
        pytest.param(End(cause=EndCause.LOST), "running", id="stopped at its lease's end: rerun"),
    ],
)
async def test_an_agent_that_is_back_before_the_fence_is_believed(
    world: World, end: End | AttemptState, state: str
) -> None:
    run, key, name = await _running(world)
    await _silence(world, name, BOUND - 1)
    await world.hello(name, stops_within_s=STOPS)
    assert await fence_silent(world.ctx) == 0
    await world.report(key, end, name=name)
    assert await world.run_state(run) == state


async def test_without_a_promise_it_waits_and_says_so(world: World) -> None:
    for name in ("local", "other"):
        await world.hello(name)
    run, _, name = await _running(world)
    await _silence(world, name, 1e6)
    assert await fence_silent(world.ctx) == 0
    why, silent_s = await _why(world, run) or (None, 0.0)
    assert why is Why.NO_FENCE
    assert silent_s == pytest.approx(1e6, abs=60)


@pytest.mark.parametrize(
    "sessions",
    [
        pytest.param([None, STOPS], id="a session between promised nothing"),
        pytest.param([STOPS / 2], id="the promise is a shorter one now"),
    ],
)
async def test_what_was_given_under_another_promise_waits(
    world: World, sessions: list[float | None]
) -> None:
    run, _, name = await _running(world)
    for stops in sessions:
        await world.hello(name, stops_within_s=stops)
    await _silence(world, name, 1e6)
    assert await fence_silent(world.ctx) == 0
    assert await _why(world, run) is not None


async def test_a_session_that_promises_the_same_or_longer_keeps_the_promise(world: World) -> None:
    _, _, name = await _running(world)
    await world.hello(name, stops_within_s=STOPS * 2)
    await _silence(world, name, BOUND + 1)
    assert await fence_silent(world.ctx) == 0, "the longer one counts"
    await _silence(world, name, fence_s(STOPS * 2) + 1)
    assert await fence_silent(world.ctx) == 1


async def test_after_a_restore_no_promise_covers_anything(world: World) -> None:
    _, _, name = await _running(world)
    async with world.ctx.db.transaction() as tx:
        await rewound.move_ahead(tx)
    await _silence(world, name, 1e6)
    assert await fence_silent(world.ctx) == 0


async def test_the_old_session_is_over_so_that_its_agent_asks_for_everything(world: World) -> None:
    _, _, name = await _running(world)
    await _silence(world, name, BOUND + 1)
    await fence_silent(world.ctx)
    with pytest.raises(Conflict) as stale:
        await world.orders(name, since=1)
    assert stale.value.code == "stale_epoch"


async def test_a_cluster_that_is_heard_again_keeps_its_session_and_its_work(world: World) -> None:
    run, key, name = await _running(world)
    await _silence(world, name, BOUND + 1)
    async with world.ctx.db.reading() as tx:
        (cluster,) = await fences.due(tx, beyond_s=LEASE_S)
    await heard(world.ctx, {world.agents[name].id: 0.0})
    async with world.ctx.db.transaction() as tx:
        assert await fences.close_session(tx, cluster.id, cluster.epoch, silent_s=BOUND) is None
    assert await fence_silent(world.ctx) == 0
    assert await world.report(key, OK, name=name) == {}
    assert await world.run_state(run) == "succeeded"


async def test_work_that_waits_is_left_alone(world: World) -> None:
    run, _, name = await _running(world, WAITS)
    await _silence(world, name, 1e6)
    assert await fence_silent(world.ctx) == 0
    assert await _why(world, run) is None


async def test_a_cancel_is_over_once_the_fence_has_passed(world: World) -> None:
    run, _, name = await _running(world)
    await _silence(world, name, BOUND - 1)
    await cancel(world.ctx, ADMIN, run)
    assert await fence_silent(world.ctx) == 0
    assert await world.run_state(run) == "cancelling"
    await _silence(world, name, BOUND + 1)
    assert await fence_silent(world.ctx) == 1
    assert await world.run_state(run) == "cancelled"
    assert await world.reserved() == {}


async def test_each_silence_is_looked_at_once(world: World) -> None:
    _, _, name = await _running(world)
    await _silence(world, name, BOUND + 1)
    assert await fence_silent(world.ctx) == 1
    assert await fence_silent(world.ctx) == 0
    async with world.ctx.db.reading() as tx:
        assert await tx.fetchval(
            "SELECT c.fenced_seen_at = h.seen_at FROM clusters c JOIN heartbeats h "
            "ON h.cluster_id = c.id WHERE c.cluster_id = $1",
            name,
        )


async def test_a_lease_lasts_from_what_is_on_record(world: World) -> None:
    async def lease_s() -> float:
        found = await hand_out(
            world.ctx, world.agents["local"], epoch=world.epochs["local"], since=0
        )
        return found.lease_s

    assert await lease_s() == pytest.approx(LEASE_S, abs=5)
    await _silence(world, "local", 40)
    assert await lease_s() == pytest.approx(LEASE_S - 40, abs=5)
    await _silence(world, "local", 400)
    assert await lease_s() < 0


async def test_a_heartbeat_that_is_written_late_is_not_younger_for_it(world: World) -> None:
    now = 1000.0
    beats = Heartbeats(world.ctx, clock=lambda: now)
    await _silence(world, "local", 300)
    beats.note(world.agents["local"].id)
    now += 100.0
    await beats.write()
    async with world.ctx.db.reading() as tx:
        seen = await tx.fetchval(
            "SELECT extract(epoch FROM now() - seen_at)::float8 FROM heartbeats "
            "WHERE cluster_id = $1",
            world.agents["local"].id,
        )
    assert seen == pytest.approx(100.0, abs=10)
    await heard(world.ctx, {world.agents["local"].id: 200.0})
    async with world.ctx.db.reading() as tx:
        assert seen == pytest.approx(
            await tx.fetchval(
                "SELECT extract(epoch FROM now() - seen_at)::float8 FROM heartbeats "
                "WHERE cluster_id = $1",
                world.agents["local"].id,
            ),
            abs=10,
        ), "an older one changes nothing"


async def test_the_agent_of_a_disabled_cluster_reports_and_gets_no_new_work(world: World) -> None:
    run, key, name = await _running(world)
    for each in ("local", "other"):
        await set_cluster_enabled(world.ctx, ADMIN, each, enabled=False)
    await world.hello(name, stops_within_s=STOPS)
    assert await world.report(key, OK, name=name) == {}
    assert await world.run_state(run) == "succeeded"
    await world.submit(RERUN)
    assert (await world.place()).placed == 0
