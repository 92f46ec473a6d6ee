"""Hello, and the peace between two agents with one identity."""

from __future__ import annotations

import asyncio
import os
import signal
import time
from pathlib import Path

import pytest

from tests.agent.fake_control_plane import FakeControlPlane
from tests.agent.rig import agent, config, until
from verderer.agent.backoff import Backoff
from verderer.agent.run import EXIT_STOPPED, run_agent
from verderer.agent.session import SupersededNote, advice
from verderer.core.errors import Conflict, NotAuthenticated
from verderer.drivers.fake.driver import FakeDriver
from verderer.drivers.fake.script import Behaviour


def test_waits_grow_from_a_tenth_to_fifteen_seconds_and_differ_by_chance() -> None:
    backoff = Backoff()
    waits = [backoff.next_s() for _ in range(40)]
    assert 0.05 <= waits[0] <= 0.1
    assert all(7.5 <= wait <= 15 for wait in waits[10:])
    assert len(set(waits)) == 40
    backoff.reset()
    assert backoff.next_s() <= 0.1


def test_each_time_it_is_superseded_it_keeps_still_for_longer(tmp_path: Path) -> None:
    now = [1_000.0]
    note = SupersededNote(tmp_path, clock=lambda: now[0])
    pauses = []
    assert note.pause_s() == 0
    for _ in range(9):
        note.leave()
        pauses.append(note.pause_s())
    assert pauses == [15, 30, 60, 120, 240, 480, 600, 600, 600]
    now[0] += 590
    assert note.pause_s() == 10
    now[0] -= 86_400
    assert note.pause_s() == 600
    note.clear()
    assert note.pause_s() == 0


def test_a_damaged_note_is_no_note(tmp_path: Path) -> None:
    (tmp_path / "superseded.json").write_text("{")
    assert SupersededNote(tmp_path).pause_s() == 0


def test_an_unknown_credential_comes_with_what_to_do() -> None:
    assert "make a new one" in advice(NotAuthenticated("no"))


async def test_it_says_hello_until_somebody_answers(
    plane: FakeControlPlane, tmp_path: Path
) -> None:
    plane.faults.fail["hello"] = 2
    plane.faults.lose_reply["hello"] = 1
    async with agent(plane, FakeDriver(), tmp_path):
        await until(lambda: plane.nodes)
    assert len({hello.instance for hello in plane.hellos}) == 1
    assert plane.hellos[0].kind == "fake"


async def test_two_agents_cannot_share_a_state_directory(
    plane: FakeControlPlane, tmp_path: Path
) -> None:
    async with agent(plane, FakeDriver(), tmp_path):
        await until(lambda: plane.nodes)
        with pytest.raises(Conflict, match="another agent uses"):
            await run_agent(config(plane, tmp_path), FakeDriver())


async def test_sigterm_flushes_reports_and_leaves_work_running(
    plane: FakeControlPlane, tmp_path: Path
) -> None:
    driver = FakeDriver(behave=lambda _order: Behaviour(run_s=None))
    async with agent(plane, driver, tmp_path) as task:
        key = plane.order()
        await until(lambda: plane.state(key) == "running")
        began = time.monotonic()
        os.kill(os.getpid(), signal.SIGTERM)
        assert await asyncio.wait_for(task, 5) == EXIT_STOPPED
        assert time.monotonic() - began < 5
    assert driver.cluster.attempts
    assert plane.state(key) == "running"


async def test_sigterm_is_heeded_while_nobody_answers_hello(
    plane: FakeControlPlane, tmp_path: Path
) -> None:
    await plane.server.go_away()
    async with agent(plane, FakeDriver(), tmp_path) as task:
        await asyncio.sleep(0.2)
        os.kill(os.getpid(), signal.SIGTERM)
        assert await asyncio.wait_for(task, 5) == EXIT_STOPPED


async def test_one_that_was_superseded_lately_keeps_still(
    plane: FakeControlPlane, tmp_path: Path
) -> None:
    SupersededNote(tmp_path).leave()
    async with agent(plane, FakeDriver(), tmp_path):
        await asyncio.sleep(0.3)
        assert plane.hellos == []
