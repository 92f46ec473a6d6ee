from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator

import pytest

from tests.drivers.contract import (
    DriverContract,
    Rig,
    begin,
    seen,
    until_over,
    until_running,
)
from tests.drivers.rigs import FakeRig, plain_order
from verderer.core.errors import Fault, Refusal
from verderer.core.model.attempt import AttemptState, EndCause
from verderer.drivers.contract import Driver, Order
from verderer.drivers.fake.cluster import FakeCluster
from verderer.drivers.fake.driver import FakeDriver, fake_nodes
from verderer.drivers.fake.script import Behaviour, VirtualClock


class TestFakeDriver(DriverContract):
    @pytest.fixture
    def rig(self) -> Iterator[Rig]:
        rig = FakeRig()
        yield rig
        assert all(times == 1 for times in rig.cluster.starts.values())


def one(behaviour: Behaviour) -> FakeDriver:
    return FakeDriver(behave=lambda _order: behaviour, clock=VirtualClock())


async def test_it_is_a_driver() -> None:
    driver: Driver = one(Behaviour())
    assert driver.kind == "fake"


async def test_virtual_hours_take_no_time() -> None:
    driver = one(Behaviour(start_s=60, run_s=7 * 24 * 3600))
    began = time.monotonic()
    order = plain_order(1)
    await begin(driver, order)
    observed = await seen(driver, order.key)
    assert observed is not None
    assert observed.state is AttemptState.STARTING
    while observed is None or not observed.state.over:
        await driver.changed(timeout_s=1e9)
        observed = await seen(driver, order.key)
    assert observed.ended_ms is not None
    assert observed.started_ms is not None
    assert observed.ended_ms - observed.started_ms == 7 * 24 * 3_600_000
    assert time.monotonic() - began < 5


async def test_waiters_by_virtual_time_are_woken_in_its_order() -> None:
    clock, woken = VirtualClock(), []

    async def sleeper(seconds: float) -> None:
        await clock.wait(asyncio.Event(), until=seconds)
        woken.append((seconds, clock.now()))

    await asyncio.gather(*(sleeper(s) for s in (3.0, 1.0, 2.0)))
    assert woken == [(1.0, 1.0), (2.0, 2.0), (3.0, 3.0)]


async def test_a_refusal_leaves_nothing_behind() -> None:
    driver = one(Behaviour(refuse="no such node pool"))
    with pytest.raises(Refusal, match="no such node pool"):
        await begin(driver, plain_order(1))
    assert await driver.observe() == []
    assert not driver.starts


async def test_a_lost_order_can_be_sent_again() -> None:
    driver, order = one(Behaviour(lose_order=True)), plain_order(1)
    with pytest.raises(Fault):
        await begin(driver, order)
    assert await driver.observe() == []
    await begin(driver, order)
    assert driver.starts[order.key] == 1


async def test_a_lost_answer_does_not_start_it_twice() -> None:
    driver, order = one(Behaviour(crash_after_accept=True)), plain_order(1)
    with pytest.raises(Fault):
        await begin(driver, order)
    assert await seen(driver, order.key) is not None
    await begin(FakeDriver(driver.cluster), order)
    assert driver.starts[order.key] == 1


async def test_a_lost_node_loses_its_attempts_and_no_others() -> None:
    nodes = iter(("node-0", "node-1"))
    driver = FakeDriver(
        behave=lambda _order: Behaviour(run_s=None, node=next(nodes)), clock=VirtualClock()
    )
    here, there = plain_order(1), plain_order(2)
    await begin(driver, here)
    await begin(driver, there)
    driver.cluster.lose_node("node-0")
    lost = await until_over(driver, here.key)
    assert lost.end is not None
    assert lost.end.cause is EndCause.LOST
    assert (await until_running(driver, there.key)).state is AttemptState.RUNNING
    assert [n.name for n in await driver.nodes() if not n.ready] == ["node-0"]
    driver.cluster.return_node("node-0")
    assert all(n.ready for n in await driver.nodes())


async def test_it_can_answer_everything_twice() -> None:
    driver, order = one(Behaviour()), plain_order(1)
    await begin(driver, order)
    driver.answers_twice = True
    assert [o.key for o in await driver.observe()] == [order.key, order.key]


async def test_an_unreachable_cluster_goes_on_working() -> None:
    driver, order = one(Behaviour(run_s=10)), plain_order(1)
    await begin(driver, order)
    driver.unreachable = True
    with pytest.raises(Fault):
        await driver.observe()
    driver.cluster.clock.advance(11)  # type: ignore[attr-defined]
    driver.unreachable = False
    assert (await until_over(driver, order.key)).state is AttemptState.SUCCEEDED


async def test_two_thousand_starts_a_second_are_cheap() -> None:
    cluster = FakeCluster(fake_nodes(), behave=lambda _order: Behaviour(run_s=1.0))
    driver = FakeDriver(cluster)
    orders: list[Order] = [plain_order(step) for step in range(4_000)]
    began = time.process_time()
    for order in orders:
        await begin(driver, order)
    await driver.observe()
    spent = time.process_time() - began
    assert spent < 1.0, f"{spent:.2f} s of processor time for 4,000 starts"
    assert len(asyncio.all_tasks()) == 1
    assert set(cluster.starts.values()) == {1}
