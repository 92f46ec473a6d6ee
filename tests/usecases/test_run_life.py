"""The life of a run, from its document to its last step, on a real PostgreSQL."""

from __future__ import annotations

import pytest

from tests.usecases.world import ADMIN, OK, World, failed
from verderer.core.errors import Conflict, IllegalMove, Invalid, NotFound
from verderer.core.model.attempt import AttemptKey, AttemptState, End, EndCause
from verderer.store.database import Database
from verderer.usecases.cancel_run import cancel
from verderer.usecases.retry_run import retry

ONE = """
metadata: {name: one}
steps:
  - {name: only, command: ["true"], resources: {requests: {cpu: 500m, memory: 64Mi}}}
"""
CHAIN = """
metadata: {name: chain}
parameters: {greet: hello}
steps:
  - {name: a, command: [echo, "${{ params.greet }}"], outputs: {data: out/}}
  - {name: b, needs: [a], command: ["true"], inputs: {data: {from: a.data, path: in}}}
  - {name: c, needs: [b], command: ["true"]}
"""
DIAMOND = """
metadata: {name: diamond}
steps:
  - {name: a, command: ["true"]}
  - {name: left, needs: [a], command: ["true"], retries: 1}
  - {name: right, needs: [a], command: ["true"]}
  - {name: join, needs: [left, right], command: ["true"]}
  - {name: clean, needs: [join], when: always(), command: ["true"]}
"""
RUNNING, STARTING = AttemptState.RUNNING, AttemptState.STARTING


@pytest.fixture
async def world(database: Database) -> World:
    return await World.make(database)


async def test_a_step_goes_from_its_document_to_success_and_gives_back_what_it_held(
    world: World,
) -> None:
    run = await world.submit(ONE)
    assert await world.step_states(run.run) == {"only": "ready"}
    assert (await world.place()).placed == 1
    assert await world.reserved() == {"cpu": 500, "memory": 64 << 20}
    (order,) = await world.orders()
    assert order.begin is not None
    assert order.begin.launch.command == ("true",)
    assert order.key == AttemptKey(run.run, 0, 1)
    assert order.begin.env["MLFLOW_TRACKING_TOKEN"].startswith("vrd_t_")
    assert await world.report(order.key, STARTING, RUNNING) == {}
    assert await world.run_state(run.run) == "running"
    await world.report(order.key, OK)
    assert await world.run_state(run.run) == "succeeded"
    assert await world.reserved() == {}
    assert await world.orders() == []


async def test_a_successor_is_released_by_the_report_that_ends_its_predecessor(
    world: World,
) -> None:
    run = await world.submit(CHAIN, greet="moin")
    await world.place()
    (a,) = await world.orders()
    assert a.begin is not None
    assert a.begin.launch.command == ("echo", "moin")
    (data,) = a.begin.outputs
    stored = ("data", data.key + "/", 10, 2, "")
    await world.report(a.key, RUNNING, OK, outputs=[stored])
    assert await world.step_states(run.run) == {"a": "succeeded", "b": "ready", "c": "blocked"}
    await world.place()
    (b,) = await world.orders()
    assert b.begin is not None
    assert [(i.path, i.key) for i in b.begin.inputs] == [("in", data.key + "/")]


async def test_a_failure_is_retried_then_skips_what_needed_it_but_not_the_cleaning(
    world: World,
) -> None:
    run = await world.submit(DIAMOND)
    await world.place()
    await world.report(AttemptKey(run.run, 0, 1), OK)
    await world.place()
    assert {o.key.step for o in await world.orders()} == {1, 2}
    await world.report(AttemptKey(run.run, 1, 1), failed(3))
    await world.report(AttemptKey(run.run, 2, 1), OK)
    assert (await world.step_states(run.run))["left"] == "ready"
    again = await world.place()
    assert again.placed == 0
    assert again.wake_in_s is not None, "the second attempt pauses first"
    async with world.ctx.db.transaction() as tx:
        await tx.execute("UPDATE queue SET not_before = now(), xid = pg_current_xact_id()")
    await world.place()
    await world.report(AttemptKey(run.run, 1, 2), failed(3))
    states = await world.step_states(run.run)
    assert (states["left"], states["join"], states["clean"]) == ("failed", "skipped", "ready")
    await world.place()
    await world.report(AttemptKey(run.run, 4, 1), OK)
    assert await world.run_state(run.run) == "failed"
    await retry(world.ctx, ADMIN, run.run, everything=False)
    states = await world.step_states(run.run)
    assert states == {
        "a": "succeeded",
        "left": "ready",
        "right": "succeeded",
        "join": "blocked",
        "clean": "blocked",
    }
    for step in (1, 3, 4):
        await world.place()
        (order,) = await world.orders()
        assert order.key.step == step
        await world.report(order.key, OK)
    assert await world.run_state(run.run) == "succeeded"
    assert await world.reserved() == {}


async def test_a_cancel_ends_what_waits_and_keeps_what_runs_until_it_is_confirmed(
    world: World,
) -> None:
    run = await world.submit(DIAMOND)
    await world.place()
    (a,) = await world.orders()
    await world.report(a.key, RUNNING)
    assert (await cancel(world.ctx, ADMIN, run.run)).value == "cancelling"
    assert (await cancel(world.ctx, ADMIN, run.run)).value == "cancelling"
    (stop,) = await world.orders(since=a.revision)
    assert stop.begin is None
    await world.report(a.key, RUNNING)  # late news of before
    assert await world.run_state(run.run) == "cancelling"
    await world.report(a.key, End(cause=EndCause.CANCELLED))
    assert await world.run_state(run.run) == "cancelled"
    assert await world.reserved() == {}
    with pytest.raises(IllegalMove):
        await cancel(world.ctx, ADMIN, run.run)


async def test_a_queued_run_is_cancelled_at_once(world: World) -> None:
    run = await world.submit(ONE)
    assert (await cancel(world.ctx, ADMIN, run.run)).value == "cancelled"
    assert (await world.place()).placed == 0


async def test_the_same_idempotency_key_gives_the_same_run(world: World) -> None:
    first = await world.submit(ONE, key="k1")
    second = await world.submit(ONE, key="k1")
    assert (second.run, second.created) == (first.run, False)
    with pytest.raises(Conflict, match="differs"):
        await world.submit(CHAIN, key="k1")


async def test_a_report_from_an_older_session_changes_nothing(world: World) -> None:
    run = await world.submit(ONE)
    await world.place()
    old = world.epochs["local"]
    await world.hello()
    new, world.epochs["local"] = world.epochs["local"], old
    with pytest.raises(Conflict) as caught:
        await world.report(AttemptKey(run.run, 0, 1), OK)
    assert caught.value.code == "stale_epoch"
    world.epochs["local"] = new
    assert await world.step_states(run.run) == {"only": "active"}


async def test_a_fact_that_is_told_twice_or_of_another_cluster_changes_nothing(
    world: World,
) -> None:
    await world.add_cluster("other", {})
    run = await world.submit(ONE)
    await world.place()
    key = AttemptKey(run.run, 0, 1)
    assert key in await world.report(key, OK, name="other")
    assert await world.report(key, OK) == {}
    assert await world.report(key, RUNNING, OK, failed()) == {}
    assert await world.run_state(run.run) == "succeeded"
    assert await world.reserved() == {}


async def test_nothing_is_placed_beyond_what_the_cluster_can_give_and_the_reason_has_numbers(
    world: World,
) -> None:
    runs = [await world.submit(ONE) for _ in range(20)]
    assert (await world.place()).placed == 8
    assert (await world.reserved())["cpu"] == 4000
    async with world.ctx.db.reading() as tx:
        (reason,) = (await tx.fetchrow("SELECT reasons FROM lane_holds"))["reasons"]
    assert reason == {
        "why": "capacity",
        "cluster": "local",
        "resource": "cpu",
        "asked": 500,
        "total": 4000,
    }
    await world.report(AttemptKey(runs[0].run, 0, 1), OK)
    assert (await world.place()).placed == 1


async def test_a_new_leader_places_each_step_once_whatever_the_old_one_still_believes(
    world: World,
) -> None:
    run = await world.submit(ONE)
    await world.lead()
    old = world.placer
    assert old is not None
    await world.lead()
    with pytest.raises(Conflict):
        await old.round()
    assert (await world.place()).placed == 1
    assert len(await world.orders()) == 1
    assert await world.step_states(run.run) == {"only": "active"}


async def test_a_step_whose_condition_is_false_is_skipped_before_anything_runs(
    world: World,
) -> None:
    run = await world.submit(
        "metadata: {name: w}\nparameters: {deploy: 'no'}\nsteps:\n"
        "- {name: a, command: ['true'], when: params.deploy == 'yes'}\n"
        "- {name: b, needs: [a], command: ['true']}\n"
    )
    assert await world.step_states(run.run) == {"a": "skipped", "b": "skipped"}
    assert await world.run_state(run.run) == "succeeded"


@pytest.mark.parametrize(
    ("document", "project", "error"),
    [
        pytest.param("steps: [", "demo", Invalid, id="a malformed document"),
        pytest.param(ONE, "elsewhere", NotFound, id="a project that does not exist"),
    ],
)
async def test_what_cannot_be_accepted_leaves_nothing_behind(
    world: World, document: str, project: str, error: type[Exception]
) -> None:
    with pytest.raises(error):
        await world.submit(document, project=project)
    async with world.ctx.db.reading() as tx:
        assert await tx.fetchval("SELECT count(*) FROM runs") == 0
