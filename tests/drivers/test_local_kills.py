"""kill -9 of everything that can be killed: nothing starts twice, nothing survives unseen."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.drivers.contract import (
    DEADLINE_S,
    Work,
    begin,
    joined,
    read_all,
    until,
    until_over,
    until_running,
)
from tests.drivers.rigs import LocalRig, plain_order
from verderer.core.model.attempt import AttemptKey, AttemptState, EndCause
from verderer.drivers.local.driver import LocalDriver
from verderer.drivers.local.monitor import kernel, records

pytestmark = pytest.mark.chaos


class Agent:
    """A real agent process over a root, to be killed."""

    def __init__(self, root: Path) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-m", "tests.drivers.agent_process", str(root)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        self.spawner = int(self._answer())

    def start(self, step: int, script: str) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(f"{step} {script}\n")
        self.process.stdin.flush()

    def accepted(self) -> None:
        assert self._answer() == "accepted"

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()
        for pipe in (self.process.stdin, self.process.stdout):
            assert pipe is not None
            try:
                pipe.close()
            except BrokenPipeError:
                pass

    def _answer(self) -> str:
        assert self.process.stdout is not None
        return self.process.stdout.readline().strip()


@pytest.fixture
def agents(tmp_path: Path) -> Iterator[Callable[[], Agent]]:
    made: list[Agent] = []

    def make() -> Agent:
        made.append(Agent(tmp_path / "root0"))
        return made[-1]

    yield make
    for agent in made:
        if agent.process.returncode is None:
            agent.kill()


def monitor_of(local: LocalRig, key: AttemptKey) -> int:
    claim = records.read(str(local.root / "attempts" / str(key)), records.CLAIM)
    assert claim is not None
    pid = claim["pid"]
    assert isinstance(pid, int)
    return pid


def program_of(local: LocalRig, key: AttemptKey) -> int:
    running = records.read(str(local.root / "attempts" / str(key)), records.PROCESSES)
    assert running is not None
    pid = running["replicas"][0]["pid"]
    assert isinstance(pid, int)
    return pid


def wait_until(reached: Callable[[], bool]) -> None:
    deadline = time.monotonic() + DEADLINE_S
    while not reached():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def gone(pid: int) -> bool:
    return kernel.started_at(pid) is None


async def test_programs_outlive_a_killed_agent_and_are_adopted(
    local: LocalRig, agents: Callable[[], Agent]
) -> None:
    agent = agents()
    release = local.root / "release"
    agent.start(
        1, f"echo before; while [ ! -e {release} ]; do sleep 0.02; done; echo after; exit 5"
    )
    agent.accepted()
    key = plain_order(1).key
    home = local.root / "attempts" / str(key)
    wait_until((home / records.PROCESSES).exists)
    agent.kill()
    wait_until(lambda: gone(agent.spawner))

    adopted = await until_running(local.driver, key)
    assert adopted.state is AttemptState.RUNNING
    await begin(local.driver, plain_order(1, script="echo twice"))
    release.touch()
    ended = await until_over(local.driver, key)
    assert ended.end is not None
    assert (ended.end.cause, ended.end.exit_code) == (EndCause.EXIT, 5)
    assert ended.started_ms == adopted.started_ms
    assert joined(await read_all(local.driver, key)) == b"before\nafter\n"


async def test_a_program_that_ends_while_no_agent_lives_keeps_its_end(
    local: LocalRig, agents: Callable[[], Agent]
) -> None:
    agent = agents()
    agent.start(1, "sleep 0.3; exit 6")
    agent.accepted()
    key = plain_order(1).key
    home = local.root / "attempts" / str(key)
    wait_until((home / records.PROCESSES).exists)
    agent.kill()
    wait_until((home / records.END).exists)
    ended = await until_over(local.driver, key)
    assert ended.end is not None
    assert ended.end.exit_code == 6


async def test_a_killed_agent_never_starts_anything_twice(
    local: LocalRig, agents: Callable[[], Agent]
) -> None:
    chance = random.Random(20)
    ledger = local.root.parent / "ledger"
    steps = 0
    for _ in range(6):
        agent = agents()
        for _ in range(8):
            agent.start(steps, f"echo {steps} >> {ledger}")
            steps += 1
        deadline = time.monotonic() + chance.uniform(0.0, 0.04)
        while time.monotonic() < deadline:
            pass
        agent.kill()
    accepted = {o.key.step for o in await local.driver.observe()}
    for step in range(steps):
        await begin(local.driver, plain_order(step, script=f"echo {step} >> {ledger}"))
    for step in range(steps):
        ended = await until_over(local.driver, plain_order(step).key)
        assert ended.state is AttemptState.SUCCEEDED, (ended, step in accepted)
    lines = sorted(int(line) for line in ledger.read_text().split())
    assert lines == list(range(steps))


async def test_programs_outlive_a_killed_spawner_and_another_takes_its_place(
    local: LocalRig,
) -> None:
    first = local.order(Work.HANG)
    await begin(local.driver, first)
    await until_running(local.driver, first.key)
    spawner = local.driver._roster.spawner_pid
    assert spawner is not None
    os.kill(spawner, signal.SIGKILL)
    for _ in range(3):
        order = local.program(script="echo alive")
        await begin(local.driver, order)
        ended = await until_over(local.driver, order.key)
        assert ended.state is AttemptState.SUCCEEDED
    assert local.driver._roster.spawner_pid != spawner
    await local.driver.stop(first.key, grace_s=5)
    assert (await until_over(local.driver, first.key)).state is AttemptState.CANCELLED


async def test_an_attempt_without_its_monitor_is_lost_and_nothing_of_it_survives(
    local: LocalRig,
) -> None:
    order = local.program(
        script="sleep 611 & setsid sleep 612 & (setsid sh -c 'sleep 613 &' &); wait"
    )
    await begin(local.driver, order)
    await until_running(local.driver, order.key)
    wait_until(lambda: all(sleepers(n) for n in (611, 612, 613)))
    os.kill(monitor_of(local, order.key), signal.SIGKILL)
    ended = await until_over(local.driver, order.key)
    assert ended.end is not None
    assert ended.end.cause is EndCause.LOST
    assert ended.end.message
    assert not any(sleepers(n) for n in (611, 612, 613))
    await local.restart()
    assert await until_over(local.driver, order.key) == ended


async def test_without_cgroups_nothing_survives_a_killed_monitor_either(
    unlimited: LocalRig,
) -> None:
    local = unlimited
    order = local.program(
        script="sleep 621 & setsid sleep 622 & (setsid sh -c 'sleep 623 &' &); wait"
    )
    await begin(local.driver, order)
    await until_running(local.driver, order.key)
    wait_until(lambda: all(sleepers(n) for n in (621, 622, 623)))
    os.kill(monitor_of(local, order.key), signal.SIGKILL)
    ended = await until_over(local.driver, order.key)
    assert ended.end is not None
    assert ended.end.cause is EndCause.LOST
    assert not any(sleepers(n) for n in (621, 622, 623))


async def test_a_monitor_killed_while_no_agent_lives_is_found(local: LocalRig) -> None:
    order = local.program(script="sleep 631")
    await begin(local.driver, order)
    await until_running(local.driver, order.key)
    await local.driver.close()
    os.kill(monitor_of(local, order.key), signal.SIGKILL)
    local.driver = LocalDriver(local.root)
    ended = await until_over(local.driver, order.key)
    assert ended.state is AttemptState.LOST
    assert not sleepers(631)


async def test_a_killed_program_is_a_signal_and_not_a_loss(local: LocalRig) -> None:
    order = local.order(Work.HANG)
    await begin(local.driver, order)
    await until_running(local.driver, order.key)
    os.kill(program_of(local, order.key), signal.SIGKILL)
    ended = await until_over(local.driver, order.key)
    assert ended.end is not None
    assert (ended.end.cause, ended.end.signal) == (EndCause.SIGNAL, 9)


async def test_a_stranger_with_the_monitors_number_is_not_taken_for_it(local: LocalRig) -> None:
    order = local.order(Work.HANG)
    await begin(local.driver, order)
    await until_running(local.driver, order.key)
    await local.driver.close()
    home = local.root / "attempts" / str(order.key)
    claim = records.read(str(home), records.CLAIM)
    assert claim is not None
    os.kill(claim["pid"], signal.SIGKILL)
    wait_until(lambda: gone(claim["pid"]))
    stranger = subprocess.Popen(["sleep", "641"])
    try:
        records.write(str(home), records.CLAIM, {**claim, "pid": stranger.pid})
        local.driver = LocalDriver(local.root)
        ended = await until_over(local.driver, order.key)
        assert ended.state is AttemptState.LOST
        assert stranger.poll() is None
    finally:
        stranger.kill()
        stranger.wait()


async def test_monitors_do_not_mind_polite_signals(local: LocalRig) -> None:
    order = local.program(script="sleep 0.5; exit 4")
    await begin(local.driver, order)
    await until(local.driver, order.key, lambda o: o.state is AttemptState.RUNNING)
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        os.kill(monitor_of(local, order.key), number)
    ended = await until_over(local.driver, order.key)
    assert ended.end is not None
    assert ended.end.exit_code == 4


def sleepers(seconds: int) -> list[int]:
    """Living processes `sleep SECONDS`."""
    found = []
    for pid in kernel.all_pids():
        try:
            words = Path(f"/proc/{pid}/cmdline").read_bytes()
        except OSError:
            continue
        if words == f"sleep\0{seconds}\0".encode() and not gone(pid):
            found.append(pid)
    return found
