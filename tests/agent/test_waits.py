"""Why attempts wait: what lasts is told once, what passes is not told at all."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.agent.fake_control_plane import FakeControlPlane
from tests.agent.rig import agent, until
from verderer.agent import waits
from verderer.agent.waits import LASTS_S, WORDS_EVERY_S, Waits
from verderer.core.model.attempt import AttemptKey
from verderer.core.model.waiting import Pending, Waiting
from verderer.drivers.fake.driver import FakeDriver
from verderer.drivers.fake.script import Behaviour
from verderer.wire.agent import WaitFact

KEY = AttemptKey(1, 0, 1)
MAKING = Waiting(code=Pending.CREATING)
SHORT = Waiting(code=Pending.RESOURCES, message="4 Insufficient cpu", numbers={"nodes": 4})
SHORTER = Waiting(code=Pending.RESOURCES, message="5 Insufficient cpu", numbers={"nodes": 5})


class Told:
    def __init__(self) -> None:
        self.now = 100.0
        self.said: list[Waiting | None] = []
        self.waits = Waits(lambda _key, waits: self.said.append(waits), clock=lambda: self.now)

    def see(self, one: Waiting | None, *, after: float = 0.0) -> None:
        self.now += after
        self.waits.see(KEY, one)
        self.waits.tell_due()

    def later(self, seconds: float) -> None:
        self.now += seconds
        self.waits.tell_due()


async def test_what_passes_in_a_moment_is_not_told() -> None:
    told = Told()
    told.see(MAKING)
    told.later(LASTS_S / 2)
    told.waits.over(KEY)
    told.later(60)
    assert told.said == []


async def test_what_lasts_is_told_once() -> None:
    told = Told()
    for _ in range(5):
        told.see(SHORT, after=LASTS_S)
    assert told.said == [SHORT]


async def test_another_reason_is_told_soon_and_other_words_now_and_then() -> None:
    told = Told()
    told.see(SHORT)
    told.later(LASTS_S)
    told.see(SHORTER, after=1)
    told.later(WORDS_EVERY_S / 2)
    assert told.said == [SHORT]
    told.later(WORDS_EVERY_S)
    assert told.said == [SHORT, SHORTER]
    told.see(MAKING)
    told.later(LASTS_S)
    assert told.said == [SHORT, SHORTER, MAKING]


async def test_words_that_change_back_are_not_told() -> None:
    told = Told()
    told.see(SHORT)
    told.later(LASTS_S)
    told.see(SHORTER, after=1)
    told.see(SHORT, after=1)
    told.later(10 * WORDS_EVERY_S)
    assert told.said == [SHORT]


async def test_that_nothing_keeps_it_any_more_is_told() -> None:
    told = Told()
    told.see(SHORT)
    told.later(LASTS_S)
    told.see(None)
    told.later(LASTS_S)
    assert told.said == [SHORT, None]


async def test_an_agent_tells_why_its_work_waits(
    plane: FakeControlPlane, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(waits, "LASTS_S", 0.0)
    driver = FakeDriver(behave=lambda _: Behaviour(start_s=600, pending=SHORT))
    async with agent(plane, driver, tmp_path):
        key = plane.order()
        await until(lambda: [fact for report in plane.reports for fact in report.waits])
    facts = [fact for report in plane.reports for fact in report.waits]
    assert facts == [
        WaitFact(key=key, code="resources", message="4 Insufficient cpu", numbers={"nodes": 4})
    ]
