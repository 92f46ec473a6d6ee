"""Logs: every byte once, within a second, whatever fails on the way."""

from __future__ import annotations

import asyncio
import random
import resource
import time
from collections.abc import AsyncIterator, Sequence
from pathlib import Path

import pytest

from tests.agent.fake_control_plane import FakeControlPlane
from tests.agent.rig import agent, until
from verderer.agent.logs.stream import Limits
from verderer.core.errors import Fault
from verderer.core.model.attempt import AttemptKey, AttemptState, End, EndCause
from verderer.drivers.contract import LogPiece, NodeFacts, Observed, Order
from verderer.drivers.fake.driver import FakeDriver
from verderer.drivers.fake.script import Behaviour
from verderer.objects.chunking import SEAL_BYTES

SUCCESS = End(cause=EndCause.EXIT, exit_code=0)


class Printer:
    """A cluster whose attempts print what the test says, and that outlives its agents."""

    kind = "printer"

    def __init__(self) -> None:
        self.order: Order | None = None
        self.end: End | None = None
        self.forgotten = False
        self.output = bytearray()
        self.holes: dict[int, int] = {}
        self.released = 0
        self.reads: list[int] = []
        self.break_after: int | None = None
        self._news = asyncio.Event()

    def print(self, data: bytes) -> None:
        self.output += data
        self.tell()

    def lose(self, count: int) -> None:
        self.holes[len(self.output)] = count
        self.output += bytes(count)
        self.tell()

    def finish(self) -> None:
        self.end = SUCCESS
        self.tell()

    def tell(self) -> None:
        self._news.set()
        self._news = asyncio.Event()

    async def observe(self) -> Sequence[Observed]:
        if self.order is None or self.forgotten:
            return []
        state = AttemptState.RUNNING if self.end is None else self.end.state
        return [Observed(key=self.order.key, state=state, end=self.end, started_ms=1)]

    async def changed(self, *, timeout_s: float) -> None:
        try:
            await asyncio.wait_for(self._news.wait(), timeout_s)
        except TimeoutError:
            return

    async def start(self, order: Order, *, workspace: str) -> None:
        self.order = order
        self.tell()

    async def stop(self, key: AttemptKey, *, grace_s: float) -> None:
        self.finish()

    async def forget(self, key: AttemptKey) -> None:
        self.forgotten = True

    async def nodes(self) -> Sequence[NodeFacts]:
        return []

    async def release_logs(self, key: AttemptKey, *, replica: int, upto: int) -> None:
        self.released = max(self.released, upto)

    async def logs(self, key: AttemptKey, *, replica: int, after: int) -> AsyncIterator[LogPiece]:
        assert after >= self.released, "asked for bytes that were released"
        self.reads.append(after)
        while True:
            news, over = self._news, self.end is not None
            while after < len(self.output):
                piece = self._piece(after)
                after += len(piece.data) + piece.lost
                yield piece
                if self.break_after is not None and after >= self.break_after:
                    self.break_after = None
                    raise Fault("the connection broke")
            if over:
                return
            await news.wait()

    def _piece(self, at: int) -> LogPiece:
        now = time.time_ns() // 1_000_000
        for begin, count in self.holes.items():
            if begin <= at < begin + count:
                lost = begin + count - at
                return LogPiece(offset=at, unix_ms=now, lost=lost, reason="spool full")
        end = min([begin for begin in self.holes if begin > at], default=len(self.output))
        return LogPiece(offset=at, unix_ms=now, data=bytes(self.output[at : min(end, at + 65536)]))

    @property
    def kept(self) -> bytes:
        text, at = b"", 0
        for begin, count in sorted(self.holes.items()):
            text += self.output[at:begin]
            at = begin + count
        return text + bytes(self.output[at:])


def lines(count: int, seed: int = 0) -> bytes:
    chance = random.Random(seed)
    return b"".join(b"%09d %s\n" % (n, chance.randbytes(20).hex().encode()) for n in range(count))


async def test_a_follower_sees_a_line_within_a_second(
    plane: FakeControlPlane, tmp_path: Path
) -> None:
    driver = Printer()
    async with agent(plane, driver, tmp_path):
        key = plane.order()
        await until(lambda: driver.order)
        await asyncio.sleep(0.3)
        for n in range(3):
            began = time.monotonic()
            driver.print(b"line %d\n" % n)
            await until(lambda: plane.log_of(key) == bytes(driver.output), within_s=1.0)
            assert time.monotonic() - began < 1.0
        driver.finish()
        await until(lambda: driver.forgotten)
    assert plane.log_of(key) == bytes(driver.output)
    assert plane.log_complete(key)


async def test_a_long_log_is_cut_into_sealed_chunks_and_released_as_it_goes(
    plane: FakeControlPlane, tmp_path: Path
) -> None:
    driver = Printer()
    async with agent(plane, driver, tmp_path):
        key = plane.order()
        await until(lambda: driver.order)
        driver.print(lines(100_000))
        await until(lambda: driver.released > 4_000_000)
        driver.finish()
        await until(lambda: driver.forgotten)
    assert plane.log_of(key) == bytes(driver.output)
    chunks = [fact for (k, _, _), fact in sorted(plane.logs.items()) if k == key]
    assert all(fact.sealed for fact in chunks)
    assert [fact.size for fact in chunks[:-1]] == [SEAL_BYTES] * (len(chunks) - 1)


async def test_losses_are_passed_on_in_their_place(plane: FakeControlPlane, tmp_path: Path) -> None:
    driver = Printer()
    async with agent(plane, driver, tmp_path):
        key = plane.order()
        await until(lambda: driver.order)
        driver.print(b"before\n")
        driver.lose(5_000)
        driver.print(b"after\n")
        driver.lose(7)
        driver.finish()
        await until(lambda: driver.forgotten)
    assert plane.log_of(key) == b"before\nafter\n"
    assert plane.lost_of(key) == 5_007


async def test_a_step_that_prints_nothing_is_complete_without_an_object(
    plane: FakeControlPlane, tmp_path: Path
) -> None:
    driver = Printer()
    driver.end = SUCCESS
    async with agent(plane, driver, tmp_path):
        key = plane.order()
        await until(lambda: driver.forgotten)
    assert plane.log_complete(key)
    assert not [one for one in plane.objects if not one.startswith("tmp/")]


async def test_a_storage_outage_loses_no_byte_and_holds_few_in_memory(
    plane: FakeControlPlane, tmp_path: Path
) -> None:
    driver = Printer()
    async with agent(plane, driver, tmp_path):
        key = plane.order()
        await until(lambda: driver.order)
        driver.print(lines(1_000))
        await until(lambda: plane.log_of(key))
        plane.faults.fail["objects"] = 1_000_000
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        driver.print(lines(300_000, seed=1))
        driver.finish()
        await until(lambda: plane.state(key) == "succeeded")
        await asyncio.sleep(0.5)
        grown_kib = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
        assert not driver.forgotten
        assert grown_kib < 64 * 1024
        plane.faults.fail["objects"] = 0
        await until(lambda: driver.forgotten)
    assert plane.log_of(key) == bytes(driver.output)


async def test_killed_at_any_moment_it_goes_on_where_it_was(
    plane: FakeControlPlane, tmp_path: Path
) -> None:
    driver, chance = Printer(), random.Random(7)
    limits = Limits(seal_bytes=40_000, flush_after_s=0.01)
    key = plane.order()
    for life in range(12):
        async with agent(plane, driver, tmp_path, logs=limits):
            await until(lambda: driver.order)
            for part in range(4):
                driver.print(lines(chance.randrange(2_000), seed=100 * life + part))
                await asyncio.sleep(chance.random() * 0.12)
            plane.faults.lose_reply["report"] = chance.randrange(2)
            plane.faults.lose_reply["objects"] = chance.randrange(2)
    driver.finish()
    async with agent(plane, driver, tmp_path, logs=limits):
        await until(lambda: driver.forgotten)
    assert plane.log_of(key) == bytes(driver.output)
    assert max(driver.reads) > 0


async def test_a_connection_to_the_log_that_breaks_is_taken_up_again(
    plane: FakeControlPlane, tmp_path: Path
) -> None:
    driver = Printer()
    driver.break_after = 100_000
    driver.print(lines(10_000))
    driver.end = SUCCESS
    async with agent(plane, driver, tmp_path):
        key = plane.order()
        await until(lambda: driver.forgotten)
    assert plane.log_of(key) == bytes(driver.output)
    assert len(driver.reads) > 1


async def test_an_address_that_expires_is_asked_for_again(
    plane: FakeControlPlane, tmp_path: Path
) -> None:
    driver = Printer()
    async with agent(plane, driver, tmp_path):
        key = plane.order()
        await until(lambda: driver.order)
        driver.print(b"one\n")
        await until(lambda: plane.log_of(key) == b"one\n")
        plane.refuse_objects = 403
        driver.print(b"two\n")
        asked = plane.grant_requests
        await until(lambda: plane.grant_requests > asked)
        plane.refuse_objects = 0
        await until(lambda: plane.log_of(key) == b"one\ntwo\n")


async def test_memory_stays_flat_over_two_hundred_idle_steps(
    plane: FakeControlPlane, tmp_path: Path
) -> None:

    driver = FakeDriver(behave=lambda _order: Behaviour(run_s=None))
    async with agent(plane, driver, tmp_path):
        keys = [plane.order() for _ in range(200)]
        await until(lambda: all(plane.state(key) == "running" for key in keys))
        await asyncio.sleep(0.5)
        assert len(asyncio.all_tasks()) < 200 + 100
        began, requests = time.process_time(), plane.server.requests
        await asyncio.sleep(2)
        assert time.process_time() - began < 1.0
        assert plane.server.requests - requests < 20


@pytest.mark.parametrize("first", [1, 5])
async def test_output_before_the_agent_looked_is_not_missed(
    plane: FakeControlPlane, tmp_path: Path, first: int
) -> None:
    driver = Printer()
    driver.print(b"early\n" * first)
    async with agent(plane, driver, tmp_path):
        key = plane.order()
        await until(lambda: plane.log_of(key) == b"early\n" * first)
