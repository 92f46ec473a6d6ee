"""Facts: in order, together, again when in doubt, and never too many in memory."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

from tests.agent.rig import until
from verderer.agent.backoff import Backoff
from verderer.agent.reporter import FULL, Reporter
from verderer.agent.session import Session
from verderer.core.errors import Fault, Invalid, TooLarge
from verderer.wire.agent import AttemptFact, LogFact, NodeFact, Report, ReportAck, Welcome


class Server:
    def __init__(self) -> None:
        self.reports: list[Report] = []
        self.before: Callable[[Report], None] = lambda _report: None
        self.gate = asyncio.Event()
        self.gate.set()

    async def report(self, report: Report) -> ReportAck:
        await self.gate.wait()
        self.before(report)
        self.reports.append(report)
        return ReportAck(epoch=1)

    def states(self, key: str) -> list[str]:
        return [f.state for r in self.reports for f in r.attempts if f.key == key]


@asynccontextmanager
async def running(server: Server, **more: int) -> AsyncIterator[Reporter]:
    reporter = Reporter(backoff=Backoff(first_s=0.001, longest_s=0.002), **more)
    welcome = Welcome(cluster="c", epoch=1, heartbeat_s=1, server_unix_ms=0)
    task = asyncio.create_task(reporter.run(Session(server, welcome)))  # type: ignore[arg-type]
    try:
        yield reporter
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


def fact(key: str, state: str = "running") -> AttemptFact:
    return AttemptFact(key=key, state=state)


def chunk(size: int, sequence: int = 0) -> LogFact:
    return LogFact(key="a", replica=0, sequence=sequence, first_byte=0, size=size)


async def test_a_fact_leaves_at_once_and_is_told_of_when_it_is_known() -> None:
    server, known = Server(), []
    async with running(server) as reporter:
        reporter.attempt(fact("a"), lambda: known.append("a"))
        await until(lambda: known)
        assert reporter.waiting == 0
    assert server.states("a") == ["running"]


async def test_starting_is_replaced_by_what_follows_at_once() -> None:
    server = Server()
    async with running(server) as reporter:
        for state in ("starting", "running", "succeeded"):
            reporter.attempt(fact("a", state))
        assert await reporter.drain(5)
    assert server.states("a") == ["running", "succeeded"]


async def test_starting_alone_is_reported_too() -> None:
    server = Server()
    async with running(server) as reporter:
        reporter.attempt(fact("a", "starting"))
        assert await reporter.drain(5)
    assert server.states("a") == ["starting"]


async def test_facts_that_come_together_go_together() -> None:
    server = Server()
    async with running(server) as reporter:
        for n in range(500):
            reporter.attempt(fact(f"k{n}"))
        assert await reporter.drain(5)
    assert len(server.reports) == 1


async def test_no_report_has_more_than_its_share() -> None:
    server = Server()
    async with running(server, max_facts=100) as reporter:
        for n in range(950):
            reporter.attempt(fact(f"k{n}"))
        assert await reporter.drain(5)
    assert [len(report.attempts) for report in server.reports] == [100] * 9 + [50]


async def test_after_a_fault_the_same_facts_are_sent_again_in_order() -> None:
    server, failures = Server(), iter([Fault("away"), Fault("away")])

    def fail(_report: Report) -> None:
        if (error := next(failures, None)) is not None:
            raise error

    server.before = fail
    async with running(server) as reporter:
        reporter.attempt(fact("a", "running"))
        reporter.attempt(fact("a", "failed"))
        assert await reporter.drain(5)
    assert server.states("a") == ["running", "failed"]


async def test_one_fact_that_is_never_taken_does_not_stop_the_others() -> None:
    server = Server()

    def refuse(report: Report) -> None:
        if any(f.key == "bad" for f in report.attempts):
            raise Invalid("what is this")

    server.before = refuse
    async with running(server) as reporter:
        for n in range(20):
            reporter.attempt(fact("bad" if n == 7 else f"k{n}"))
        reporter.nodes([NodeFact(name="n", ready=True)])
        assert await reporter.drain(5)
    assert len({f.key for r in server.reports for f in r.attempts}) == 19
    assert any(report.nodes for report in server.reports)


async def test_a_report_that_is_too_large_is_divided() -> None:
    server = Server()

    def refuse(report: Report) -> None:
        if len(report.attempts) > 3:
            raise TooLarge("too large")

    server.before = refuse
    async with running(server) as reporter:
        for n in range(16):
            reporter.attempt(fact(f"k{n}"))
        assert await reporter.drain(5)
    assert sum(len(r.attempts) for r in server.reports) == 16


async def test_a_growing_chunk_is_one_fact_however_often_it_grew() -> None:
    server, known = Server(), []
    server.gate.clear()
    async with running(server) as reporter:
        for size in range(1, 10_001):
            reporter.log(chunk(size), lambda: known.append(1))
        assert reporter.waiting <= 2
        server.gate.set()
        assert await reporter.drain(5)
    assert server.reports[-1].logs[-1].size == 10_000
    assert len(known) == 10_000


async def test_only_the_latest_nodes_are_sent() -> None:
    server = Server()
    server.gate.clear()
    async with running(server) as reporter:
        for n in range(100):
            reporter.nodes([NodeFact(name=f"n{n}", ready=True)])
        server.gate.set()
        assert await reporter.drain(5)
    assert [report.nodes[0].name for report in server.reports if report.nodes][-1] == "n99"
    assert len(server.reports) <= 2


async def test_with_too_much_in_hand_no_new_work_is_taken_on() -> None:
    server = Server()
    server.gate.clear()
    async with running(server) as reporter:
        for n in range(FULL):
            reporter.attempt(fact(f"k{n}"))
        waiting = asyncio.create_task(reporter.room())
        await asyncio.sleep(0.01)
        assert not waiting.done()
        server.gate.set()
        await asyncio.wait_for(waiting, 10)
