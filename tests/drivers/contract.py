"""What every driver must do, whatever cluster is behind it; `Rig` is what its tests give."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from enum import StrEnum
from typing import Protocol

import pytest

from verderer.core.errors import Conflict, Refusal
from verderer.core.model.attempt import AttemptKey, AttemptState, EndCause
from verderer.drivers.contract import Driver, LogPiece, Observed, Order

DEADLINE_S = 60.0
RUN = 0x1234_5678_9ABC


class Work(StrEnum):
    """The programs that a rig must know how to order."""

    SUCCEED = "succeed"
    EXIT_3 = "exit 3"
    KILLED = "killed by signal 9"
    HANG = "hang until stopped"
    STUBBORN = "ignore polite signals"
    NO_SUCH_PROGRAM = "a program that does not exist"
    OOM = "use more memory than allowed"
    TALK = "say TALK_OUTPUT and succeed"


TALK_OUTPUT = b"one\ntwo\n\x00\xff\xfe binary\n"


class Rig(Protocol):
    """A driver over a real or fake cluster, and a way to lose and replace the agent."""

    @property
    def driver(self) -> Driver: ...

    async def restart(self) -> None:
        """Put another driver over the same cluster into `driver`, as a new agent would."""
        ...

    def order(self, work: Work, **changes: object) -> Order:
        """An order for `work` with a key of its own."""
        ...


async def seen(driver: Driver, key: AttemptKey) -> Observed | None:
    """What `observe` says about one attempt."""
    found = [o for o in await driver.observe() if o.key == key]
    return found[0] if found else None


async def until(driver: Driver, key: AttemptKey, reached: Callable[[Observed], bool]) -> Observed:
    """Observe at each change until it is so."""
    deadline = time.monotonic() + DEADLINE_S
    while True:
        observed = await seen(driver, key)
        if observed is not None and reached(observed):
            return observed
        assert time.monotonic() < deadline, f"{key} never got there: {observed}"
        await driver.changed(timeout_s=1.0)


async def until_over(driver: Driver, key: AttemptKey) -> Observed:
    return await until(driver, key, lambda o: o.state.over)


async def until_running(driver: Driver, key: AttemptKey) -> Observed:
    return await until(driver, key, lambda o: o.state is not AttemptState.STARTING)


async def begin(driver: Driver, order: Order) -> AttemptKey:
    await driver.start(order, workspace="")
    return order.key


async def read_all(driver: Driver, key: AttemptKey, after: int = 0) -> list[LogPiece]:
    return [piece async for piece in driver.logs(key, replica=0, after=after)]


def joined(pieces: list[LogPiece]) -> bytes:
    return b"".join(piece.data for piece in pieces)


NOT_LAUNCHED = "JobLaunchFailure"
"""Slurm says so where a node was too busy to start a job: true, and not what is asked here."""
LAUNCHES = 3


class DriverContract:
    """Subclass it as `Test…` in a module with a fixture `rig`."""

    @pytest.mark.parametrize(
        ("work", "state", "cause", "exit_code", "signal"),
        [
            pytest.param(
                Work.SUCCEED,
                AttemptState.SUCCEEDED,
                EndCause.EXIT,
                0,
                None,
                id="exit code 0 is success",
            ),
            pytest.param(
                Work.EXIT_3,
                AttemptState.FAILED,
                EndCause.EXIT,
                3,
                None,
                id="another exit code is a failure and is kept",
            ),
            pytest.param(
                Work.KILLED,
                AttemptState.FAILED,
                EndCause.SIGNAL,
                None,
                9,
                id="a signal is not an exit code",
            ),
            pytest.param(
                Work.OOM,
                AttemptState.FAILED,
                EndCause.OOM,
                None,
                9,
                id="running out of its own memory is told from other kills",
            ),
            pytest.param(
                Work.NO_SUCH_PROGRAM,
                AttemptState.FAILED,
                EndCause.START,
                None,
                None,
                id="what cannot be started says so",
            ),
        ],
    )
    async def test_ends_are_told_apart(
        self,
        rig: Rig,
        work: Work,
        state: AttemptState,
        cause: EndCause,
        exit_code: int | None,
        signal: int | None,
    ) -> None:
        for _ in range(LAUNCHES):
            key = await begin(rig.driver, rig.order(work))
            observed = await until_over(rig.driver, key)
            assert observed.end is not None
            if NOT_LAUNCHED not in observed.end.message:
                break
        assert (observed.state, observed.end.cause) == (state, cause), observed
        assert (observed.end.exit_code, observed.end.signal) == (exit_code, signal)
        assert len(observed.end.message) <= 2000
        assert observed.ended_ms is not None

    async def test_a_timeout_ends_it(self, rig: Rig) -> None:
        key = await begin(rig.driver, rig.order(Work.HANG, timeout_s=0.2, grace_s=5.0))
        observed = await until_over(rig.driver, key)
        assert observed.state is AttemptState.FAILED
        assert observed.end is not None
        assert observed.end.cause is EndCause.TIMEOUT
        assert "0.2 s" in observed.end.message

    async def test_a_second_start_changes_nothing(self, rig: Rig) -> None:
        order = rig.order(Work.HANG)
        await begin(rig.driver, order)
        first = await until_running(rig.driver, order.key)
        await begin(rig.driver, order)
        assert await seen(rig.driver, order.key) == first
        assert len([o for o in await rig.driver.observe() if o.key == order.key]) == 1
        await rig.driver.stop(order.key, grace_s=0)
        await until_over(rig.driver, order.key)

    async def test_a_start_after_the_end_changes_nothing(self, rig: Rig) -> None:
        order = rig.order(Work.SUCCEED)
        await begin(rig.driver, order)
        ended = await until_over(rig.driver, order.key)
        await begin(rig.driver, order)
        assert await seen(rig.driver, order.key) == ended

    async def test_starts_at_the_same_time_make_one_attempt(self, rig: Rig) -> None:
        order = rig.order(Work.SUCCEED)
        await asyncio.gather(*(begin(rig.driver, order) for _ in range(5)))
        await until_over(rig.driver, order.key)
        assert len(await rig.driver.observe()) == 1

    async def test_what_runs_is_found_again_after_a_restart(self, rig: Rig) -> None:
        order = rig.order(Work.HANG)
        await begin(rig.driver, order)
        before = await until_running(rig.driver, order.key)
        await rig.restart()
        assert await seen(rig.driver, order.key) == before
        await begin(rig.driver, order)
        assert await seen(rig.driver, order.key) == before
        await rig.driver.stop(order.key, grace_s=0)
        assert (await until_over(rig.driver, order.key)).state is AttemptState.CANCELLED

    async def test_what_ended_is_still_known_after_a_restart(self, rig: Rig) -> None:
        key = await begin(rig.driver, rig.order(Work.EXIT_3))
        before = await until_over(rig.driver, key)
        await rig.restart()
        assert await seen(rig.driver, key) == before

    async def test_a_polite_stop_is_enough_for_most(self, rig: Rig) -> None:
        key = await begin(rig.driver, rig.order(Work.HANG))
        await until_running(rig.driver, key)
        await rig.driver.stop(key, grace_s=60)
        await rig.driver.stop(key, grace_s=60)
        observed = await until_over(rig.driver, key)
        assert observed.state is AttemptState.CANCELLED
        assert observed.end is not None
        assert observed.end.cause is EndCause.CANCELLED

    async def test_force_comes_after_the_grace(self, rig: Rig) -> None:
        key = await begin(rig.driver, rig.order(Work.STUBBORN))
        await until_running(rig.driver, key)
        await rig.driver.stop(key, grace_s=0.3)
        observed = await until_over(rig.driver, key)
        assert observed.state is AttemptState.CANCELLED

    async def test_a_stop_before_the_start_keeps_it_from_starting(self, rig: Rig) -> None:
        order = rig.order(Work.SUCCEED)
        await rig.driver.stop(order.key, grace_s=1)
        await begin(rig.driver, order)
        observed = await until_over(rig.driver, order.key)
        assert observed.state is AttemptState.CANCELLED
        assert observed.started_ms is None
        await rig.restart()
        await begin(rig.driver, order)
        again = await until_over(rig.driver, order.key)
        assert (again.state, again.started_ms) == (AttemptState.CANCELLED, None)

    async def test_a_stop_after_the_end_changes_nothing(self, rig: Rig) -> None:
        key = await begin(rig.driver, rig.order(Work.SUCCEED))
        ended = await until_over(rig.driver, key)
        await rig.driver.stop(key, grace_s=0)
        assert await seen(rig.driver, key) == ended

    async def test_output_is_complete_after_the_end(self, rig: Rig) -> None:
        key = await begin(rig.driver, rig.order(Work.TALK))
        assert joined(await read_all(rig.driver, key)) == TALK_OUTPUT
        await until_over(rig.driver, key)
        assert joined(await read_all(rig.driver, key)) == TALK_OUTPUT

    async def test_output_can_be_taken_up_in_the_middle(self, rig: Rig) -> None:
        key = await begin(rig.driver, rig.order(Work.TALK))
        await until_over(rig.driver, key)
        pieces = await read_all(rig.driver, key, after=4)
        assert joined(pieces) == TALK_OUTPUT[4:]
        assert pieces[0].offset == 4
        assert await read_all(rig.driver, key, after=len(TALK_OUTPUT)) == []

    async def test_output_has_the_time_at_which_it_came(self, rig: Rig) -> None:
        key = await begin(rig.driver, rig.order(Work.TALK))
        observed = await until_over(rig.driver, key)
        assert observed.started_ms is not None
        for piece in await read_all(rig.driver, key):
            assert abs(piece.unix_ms - observed.started_ms) < 60_000

    async def test_what_is_forgotten_is_gone(self, rig: Rig) -> None:
        key = await begin(rig.driver, rig.order(Work.TALK))
        await until_over(rig.driver, key)
        await rig.driver.forget(key)
        await rig.driver.forget(key)
        assert await seen(rig.driver, key) is None
        await rig.restart()
        assert await seen(rig.driver, key) is None

    async def test_what_runs_cannot_be_forgotten(self, rig: Rig) -> None:
        key = await begin(rig.driver, rig.order(Work.HANG))
        with pytest.raises(Conflict):
            await rig.driver.forget(key)
        await rig.driver.stop(key, grace_s=0)
        await until_over(rig.driver, key)

    async def test_there_is_no_output_of_what_does_not_exist(self, rig: Rig) -> None:
        with pytest.raises(Refusal):
            await read_all(rig.driver, AttemptKey(RUN, 9_999, 1))

    async def test_nodes_say_what_they_can_give(self, rig: Rig) -> None:
        nodes = await rig.driver.nodes()
        assert nodes
        for node in nodes:
            assert node.ready
            assert node.allocatable.get("cpu") > 0
            assert node.allocatable.get("memory") > 0

    async def test_changed_returns_in_time_when_nothing_happens(self, rig: Rig) -> None:
        await rig.driver.observe()
        async with asyncio.timeout(5):
            await rig.driver.changed(timeout_s=0.05)

    async def test_many_attempts_all_end(self, rig: Rig) -> None:
        orders = [rig.order(Work.SUCCEED) for _ in range(20)]
        await asyncio.gather(*(begin(rig.driver, order) for order in orders))
        for order in orders:
            assert (await until_over(rig.driver, order.key)).state is AttemptState.SUCCEEDED
