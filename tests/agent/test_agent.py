"""The whole agent against a control plane that misbehaves, on a fake cluster."""

from __future__ import annotations

import asyncio
from pathlib import Path

from tests.agent.fake_control_plane import FakeControlPlane
from tests.agent.rig import agent, until
from verderer.agent.run import EXIT_SUPERSEDED
from verderer.core.model.attempt import AttemptKey, End, EndCause
from verderer.drivers.contract import Order
from verderer.drivers.fake.driver import FakeDriver
from verderer.drivers.fake.script import Behaviour


def behaving(**how: object) -> FakeDriver:
    return FakeDriver(behave=lambda _order: Behaviour(**how))  # type: ignore[arg-type]


async def test_an_order_runs_to_its_end_and_leaves_nothing_behind(
    plane: FakeControlPlane, tmp_path: Path
) -> None:
    driver = behaving(run_s=0.05, output=b"hello\n")
    async with agent(plane, driver, tmp_path):
        key = plane.order()
        await until(lambda: plane.state(key) == "succeeded")
        await until(lambda: plane.log_complete(key))
        await until(lambda: not driver.cluster.attempts)
    assert [fact.state for fact in plane.facts][-2:] == ["running", "succeeded"]
    assert plane.log_of(key) == b"hello\n"
    assert driver.starts == {AttemptKey.parse(key): 1}


async def test_how_it_ended_arrives_unchanged(plane: FakeControlPlane, tmp_path: Path) -> None:
    end = End(cause=EndCause.SIGNAL, signal=9, message="killed")
    async with agent(plane, behaving(end=end), tmp_path):
        key = plane.order()
        await until(lambda: plane.ends[key])
    fact = plane.end_of(key)
    assert fact.end is not None
    assert (fact.state, fact.end.cause, fact.end.signal) == ("failed", "signal", 9)
    assert (fact.node, fact.at_unix_ms > 0) == ("node-0", True)


async def test_a_lost_reply_to_a_sync_brings_the_same_order_and_one_start(
    plane: FakeControlPlane, tmp_path: Path
) -> None:
    driver = behaving(run_s=0.05)
    plane.faults.lose_reply["sync"] = 2
    async with agent(plane, driver, tmp_path):
        key = plane.order()
        await until(lambda: plane.state(key) == "succeeded")
    assert driver.starts[AttemptKey.parse(key)] == 1


async def test_a_lost_reply_to_a_report_sends_the_facts_again_in_order(
    plane: FakeControlPlane, tmp_path: Path
) -> None:
    driver = behaving(run_s=0.02)
    plane.faults.lose_reply["report"] = 3
    plane.faults.fail["report"] = 2
    async with agent(plane, driver, tmp_path):
        key = plane.order()
        await until(lambda: not driver.cluster.attempts and plane.ends[key])
    assert plane.facts[-1].state == "succeeded"
    assert {fact.state for fact in plane.ends[key]} <= {"starting", "running", "succeeded"}


async def test_orders_sent_again_and_again_start_once(
    plane: FakeControlPlane, tmp_path: Path
) -> None:
    driver = behaving(run_s=0.3)
    async with agent(plane, driver, tmp_path):
        keys = [plane.order() for _ in range(20)]
        for _ in range(20):
            plane.send_again()
            plane.faults.full = 1
            await asyncio.sleep(0.01)
        await until(lambda: all(plane.state(key) == "succeeded" for key in keys))
    assert set(driver.starts.values()) == {1}


async def test_a_cancelled_attempt_is_stopped_and_reported_as_cancelled(
    plane: FakeControlPlane, tmp_path: Path
) -> None:
    async with agent(plane, behaving(run_s=None), tmp_path):
        key = plane.order()
        await until(lambda: plane.state(key) == "running")
        plane.cancel(key)
        await until(lambda: plane.state(key) == "cancelled")


async def test_an_order_that_was_a_stop_from_the_first_is_never_started(
    plane: FakeControlPlane, tmp_path: Path
) -> None:
    driver = behaving()
    async with agent(plane, driver, tmp_path):
        key = plane.order(start=False)
        await until(lambda: plane.state(key) == "cancelled")
        await asyncio.sleep(0.05)
    assert not driver.starts


async def test_a_refusal_of_the_cluster_is_an_end_with_its_reason(
    plane: FakeControlPlane, tmp_path: Path
) -> None:
    async with agent(plane, behaving(refuse="no such image"), tmp_path):
        key = plane.order()
        await until(lambda: plane.state(key) == "failed")
    end = plane.end_of(key).end
    assert end is not None
    assert (end.cause, end.message) == ("start", "no such image")


async def test_an_order_lost_on_its_way_to_the_cluster_is_given_again(
    plane: FakeControlPlane, tmp_path: Path
) -> None:
    driver = behaving(lose_order=True)
    async with agent(plane, driver, tmp_path):
        key = plane.order()
        await until(lambda: plane.state(key) == "succeeded")
    assert driver.starts[AttemptKey.parse(key)] == 1


async def test_an_order_accepted_without_an_answer_runs_once(
    plane: FakeControlPlane, tmp_path: Path
) -> None:
    driver = behaving(crash_after_accept=True, run_s=0.3)
    async with agent(plane, driver, tmp_path):
        key = plane.order()
        await until(lambda: plane.state(key) == "succeeded")
    assert driver.starts[AttemptKey.parse(key)] == 1


async def test_killed_between_start_and_report_it_finds_its_work_again(
    plane: FakeControlPlane, tmp_path: Path
) -> None:
    driver = behaving(run_s=0.2)
    plane.faults.fail["report"] = 1_000_000
    async with agent(plane, driver, tmp_path):
        key = plane.order()
        await until(lambda: driver.starts)
    plane.faults.fail["report"] = 0
    async with agent(plane, FakeDriver(driver.cluster), tmp_path):
        await until(lambda: plane.state(key) == "succeeded")
    assert driver.starts[AttemptKey.parse(key)] == 1


async def test_what_was_launched_and_left_no_trace_is_lost_and_not_started_again(
    plane: FakeControlPlane, tmp_path: Path
) -> None:
    driver = behaving(run_s=None)
    async with agent(plane, driver, tmp_path):
        key = plane.order()
        await until(lambda: plane.state(key) == "running")
    driver.cluster.remove(AttemptKey.parse(key))
    async with agent(plane, FakeDriver(driver.cluster), tmp_path):
        await until(lambda: plane.state(key) == "lost")
    assert driver.starts[AttemptKey.parse(key)] == 1


async def test_silence_of_the_cluster_proves_nothing(
    plane: FakeControlPlane, tmp_path: Path
) -> None:
    driver = behaving(run_s=1.0)
    async with agent(plane, driver, tmp_path):
        key = plane.order()
        await until(lambda: plane.state(key) == "running")
        driver.unreachable = True
        await asyncio.sleep(0.6)
        assert plane.state(key) == "running"
        driver.unreachable = False
        await until(lambda: plane.state(key) == "succeeded")


async def test_work_ends_while_the_server_is_away_and_is_reported_later(
    plane: FakeControlPlane, tmp_path: Path
) -> None:
    driver = behaving(run_s=0.2, output=b"done\n")
    async with agent(plane, driver, tmp_path):
        keys = [plane.order() for _ in range(50)]
        await until(lambda: len(driver.starts) == 50)
        await plane.server.go_away()
        await asyncio.sleep(0.5)
        await plane.server.come_back()
        await until(lambda: all(plane.state(key) == "succeeded" for key in keys))
        await until(lambda: all(plane.log_of(key) == b"done\n" for key in keys))
        await until(lambda: not driver.cluster.attempts)


async def test_a_server_of_one_byte_a_second_does_not_stop_the_rest(
    plane: FakeControlPlane, tmp_path: Path
) -> None:
    driver = behaving(run_s=0.1)
    async with agent(plane, driver, tmp_path, request_timeout_s=1.0):
        key = plane.order()
        await until(lambda: driver.starts)
        plane.faults.dribble["sync"] = 1
        plane.order()
        await until(lambda: plane.state(key) == "succeeded")
        await until(lambda: len(driver.starts) == 2)


async def test_of_two_agents_with_one_identity_the_older_leaves_and_touches_nothing(
    plane: FakeControlPlane, tmp_path: Path
) -> None:
    driver = behaving(run_s=0.5)
    async with agent(plane, driver, tmp_path / "a") as older:
        key = plane.order()
        await until(lambda: plane.state(key) == "running")
        async with agent(plane, FakeDriver(driver.cluster), tmp_path / "b"):
            assert await asyncio.wait_for(older, 5) == EXIT_SUPERSEDED
            await until(lambda: plane.state(key) == "succeeded")
    assert driver.starts[AttemptKey.parse(key)] == 1
    assert (tmp_path / "a" / "superseded.json").exists()


async def test_what_nobody_wants_is_stopped_reported_and_forgotten(
    plane: FakeControlPlane, tmp_path: Path
) -> None:
    driver = behaving(run_s=None)
    stray = AttemptKey(99, 0, 1)
    await driver.start(Order(key=stray, run_name="r", step="s", project="p"), workspace="")
    async with agent(plane, driver, tmp_path):
        await until(lambda: stray not in driver.cluster.attempts)
    assert [fact.state for fact in plane.ends[str(stray)]][-1] == "cancelled"


async def test_an_agent_without_its_memory_adopts_what_runs(
    plane: FakeControlPlane, tmp_path: Path
) -> None:
    driver = behaving(run_s=0.3, output=b"text")
    async with agent(plane, driver, tmp_path / "a"):
        key = plane.order()
        await until(lambda: plane.state(key) == "running")
    async with agent(plane, FakeDriver(driver.cluster), tmp_path / "b"):
        await until(lambda: plane.state(key) == "succeeded")
        await until(lambda: plane.log_of(key) == b"text")
    assert driver.starts[AttemptKey.parse(key)] == 1


async def test_a_revoked_credential_is_waited_out_without_touching_work(
    plane: FakeControlPlane, tmp_path: Path
) -> None:
    driver = behaving(run_s=None)
    async with agent(plane, driver, tmp_path) as task:
        key = plane.order()
        await until(lambda: plane.state(key) == "running")
        plane.credential = "another"
        await asyncio.sleep(0.3)
        assert not task.done()
    assert AttemptKey.parse(key) in driver.cluster.attempts


async def test_nodes_are_reported_and_again_when_one_is_lost(
    plane: FakeControlPlane, tmp_path: Path
) -> None:
    driver = behaving()
    async with agent(plane, driver, tmp_path):
        await until(lambda: len(plane.nodes) == 4)
        driver.cluster.lose_node("node-1")
        await until(lambda: [node.ready for node in plane.nodes].count(False) == 1)


async def test_a_cluster_that_answers_twice_changes_nothing(
    plane: FakeControlPlane, tmp_path: Path
) -> None:
    driver = behaving(run_s=0.05)
    driver.answers_twice = True
    async with agent(plane, driver, tmp_path):
        key = plane.order()
        await until(lambda: plane.state(key) == "succeeded")
    assert len(plane.ends[key]) == 1


async def test_an_order_with_an_unreadable_key_harms_no_other(
    plane: FakeControlPlane, tmp_path: Path
) -> None:
    async with agent(plane, behaving(), tmp_path):
        good = plane.order()
        plane.orders["../../x"] = plane.orders[good].__class__(key="../../x", revision=99)
        await until(lambda: plane.state(good) == "succeeded")
