"""Leased work ends with its lease, agent or no agent; other work does not notice."""

from __future__ import annotations

import asyncio
import os
import signal
import time
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from tests.drivers.contract import Work, begin, until_over, until_running
from tests.drivers.rigs import LocalRig
from verderer.core.model.attempt import AttemptKey, AttemptState, EndCause
from verderer.drivers.contract import StopsUnheard
from verderer.drivers.local.driver import LocalDriver
from verderer.drivers.local.leases import Leases
from verderer.drivers.local.monitor import kernel, lease, records


@pytest.fixture
async def rig(tmp_path: Path) -> AsyncIterator[LocalRig]:
    rig = LocalRig(tmp_path / "root", cgroup="off")
    yield rig
    await rig.end()
    await rig.driver.close()


def test_the_driver_promises(tmp_path: Path) -> None:
    driver = LocalDriver(tmp_path)
    assert isinstance(driver, StopsUnheard)
    assert driver.stops_within_s == 45.0


async def _begin(rig: LocalRig, work: Work, **changes: Any) -> AttemptKey:
    order = rig.order(work, **changes)
    return await begin(rig.driver, order)


async def test_leased_work_ends_with_its_lease_and_other_work_goes_on(rig: LocalRig) -> None:
    await rig.driver.renew(rig.driver.now() + 3.0)
    leased = await _begin(rig, Work.HANG, leased=True)
    free = await _begin(rig, Work.HANG)
    await until_running(rig.driver, leased)
    await until_running(rig.driver, free)
    seen = await until_over(rig.driver, leased)
    assert seen.end is not None
    assert seen.end.cause is EndCause.LOST
    assert seen.end.message == lease.OVER
    others = {o.key: o.state for o in await rig.driver.observe()}
    assert others[free] is AttemptState.RUNNING


async def test_a_renewed_lease_lets_it_go_on(rig: LocalRig) -> None:
    began = rig.driver.now()
    await rig.driver.renew(began + 2.0)
    leased = await _begin(rig, Work.HANG, leased=True)
    await until_running(rig.driver, leased)
    await rig.driver.renew(began + 4.0)
    seen = await until_over(rig.driver, leased)
    assert seen.ended_ms is not None
    assert lease.now() >= began + 4.0
    assert seen.end is not None
    assert seen.end.cause is EndCause.LOST


async def test_it_ends_although_its_agent_is_gone(rig: LocalRig) -> None:
    await rig.driver.renew(rig.driver.now() + 2.0)
    leased = await _begin(rig, Work.HANG, leased=True)
    await until_running(rig.driver, leased)
    await rig.driver.close()
    home = rig.root / "attempts" / str(leased)
    deadline = time.monotonic() + 20.0
    while records.read(str(home), records.END) is None:
        assert time.monotonic() < deadline, "its monitor alone has to end it"
        time.sleep(0.05)
    running = records.read(str(home), records.PROCESSES)
    assert running is not None
    for one in running["replicas"]:
        assert kernel.started_at(one["pid"]) != one["started"]
    await rig.restart()
    assert (await until_over(rig.driver, leased)).state is AttemptState.LOST


async def test_a_stubborn_program_is_killed(rig: LocalRig) -> None:
    await rig.driver.renew(rig.driver.now() + 2.0)
    leased = await _begin(rig, Work.STUBBORN, leased=True, grace_s=0.5)
    await until_running(rig.driver, leased)
    seen = await until_over(rig.driver, leased)
    assert seen.end is not None
    assert (seen.end.cause, seen.end.signal) == (EndCause.LOST, 9)


@pytest.mark.parametrize("until", [None, -1.0], ids=["no lease was ever given", "it is over"])
async def test_nothing_leased_begins_without_a_lease(rig: LocalRig, until: float | None) -> None:
    if until is not None:
        await rig.driver.renew(rig.driver.now() + until)
    leased = await _begin(rig, Work.HANG, leased=True)
    seen = await until_over(rig.driver, leased)
    assert seen.started_ms is None
    assert seen.end is not None
    assert seen.end.cause is EndCause.LOST


async def test_a_lease_after_a_break_is_not_for_what_was_ordered_before(rig: LocalRig) -> None:
    await rig.driver.renew(rig.driver.now() + 2.0)
    leased = await _begin(rig, Work.HANG, leased=True)
    await until_running(rig.driver, leased)
    claim = records.read(str(rig.root / "attempts" / str(leased)), records.CLAIM)
    assert claim is not None
    os.kill(claim["pid"], signal.SIGSTOP)  # as if the whole machine had stood still
    await asyncio.sleep(2.5)
    await rig.restart()
    await rig.driver.renew(rig.driver.now() + 60.0)
    os.kill(claim["pid"], signal.SIGCONT)
    seen = await until_over(rig.driver, leased)
    assert seen.end is not None
    assert seen.end.cause is EndCause.LOST
    after = await _begin(rig, Work.HANG, leased=True)
    await until_running(rig.driver, after)


@pytest.mark.parametrize(
    "document",
    [
        pytest.param({"boot": "another", "until": 1e12, "term": 1}, id="of an earlier boot"),
        pytest.param({"boot": kernel.boot_id(), "until": 1e12, "term": 2}, id="another term"),
        pytest.param({"boot": kernel.boot_id(), "until": "soon", "term": 1}, id="no number"),
        pytest.param({"boot": kernel.boot_id()}, id="nothing"),
    ],
)
def test_a_lease_that_is_not_ours_or_cannot_be_read_is_none(
    tmp_path: Path, document: dict[str, object]
) -> None:
    records.write(str(tmp_path), records.LEASE, document)
    found = lease.Lease(str(tmp_path), kernel.boot_id(), term=1)
    assert found.over()
    assert found.left_s() is None
    assert not found.over(), "said once"


def test_leases_go_on_after_a_restart_and_count_their_breaks(tmp_path: Path) -> None:
    def opened() -> Leases:
        leases = Leases(tmp_path)
        leases.open("boot")
        return leases

    first = opened()
    first.renew(lease.now() + 100.0)
    assert first.term == 1
    first.renew(lease.now() + 200.0)
    assert first.term == 1
    again = opened()
    again.renew(lease.now() + 300.0)
    assert again.term == 1
    records.write(
        str(tmp_path), records.LEASE, {"boot": "boot", "until": lease.now() - 1, "term": 4}
    )
    late = opened()
    late.renew(lease.now() + 100.0)
    assert late.term == 5
