"""Promise 2 under partitions: two attempts of a step never run at once, whatever is cut and when.

The machine plays two clusters with agents whose clocks run wrong, links that lose requests or
answers in either direction, answers that come late, agents and servers that die, programs that run
as long as their guard lets them, people who cancel, and the scheduler. Time is the database's: it
is made to pass by making everything that was noted older.
"""

from __future__ import annotations

import asyncio
import time
from collections import Counter, defaultdict
from collections.abc import Coroutine
from dataclasses import dataclass, field
from typing import Any, ClassVar, TypeVar

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
)

from tests.rig.invariants import BROKEN
from tests.usecases.play import play, wipe
from tests.usecases.world import ADMIN, OK, World
from verderer.core.errors import Conflict, Refusal
from verderer.core.model.attempt import AttemptKey, AttemptState, End, EndCause
from verderer.store.database import Database
from verderer.usecases.agents.fence import fence_silent
from verderer.usecases.agents.hand_out_orders import Orders, hand_out
from verderer.usecases.agents.heartbeats import Heartbeats
from verderer.usecases.cancel_run import cancel

T = TypeVar("T")

STOPS_S = 45.0
DRIFT = 0.02
NAMES = ("local", "other")
DOCUMENT = """
metadata: {name: p, project: demo}
onClusterLost: rerun
steps:
- {name: a, command: [x], resources: {requests: {cpu: 1}}}
- {name: b, command: [x], onClusterLost: wait, resources: {requests: {cpu: 1}}}
- {name: c, needs: [a], when: always(), command: [x], resources: {requests: {cpu: 1}}}
"""
LOST = End(cause=EndCause.LOST)


@dataclass
class Program:
    """What really exists on a cluster."""

    leased: bool
    term: int
    end: End | None = None
    stops_at: float | None = None
    """By the machine's clock, once its guard has begun to stop it."""


@dataclass
class Machine:
    """A cluster with its agent: what survives the agent's death is here."""

    rate: float
    """Of its clock: seconds by it in one second."""
    up: bool = True
    """Requests arrive."""
    down: bool = True
    """Answers arrive."""
    session: bool = False
    since: int = 0
    until: float = float("-inf")
    term: int = 0
    programs: dict[AttemptKey, Program] = field(default_factory=dict)
    preparing: set[AttemptKey] = field(default_factory=set)
    """Taken on, and not begun yet; forgotten when the agent dies."""
    flying: list[tuple[float, int, Orders]] = field(default_factory=list)
    """Answers on their way: when they were asked for, in which session, and what they say."""
    epoch: int = 0
    finished: set[AttemptKey] = field(default_factory=set)
    """Told and acknowledged: an answer from before that does not begin them again."""


class Partitions(RuleBasedStateMachine):
    database: ClassVar[Database]
    loop: ClassVar[asyncio.AbstractEventLoop]

    def run_(self, work: Coroutine[Any, Any, T]) -> T:
        return self.loop.run_until_complete(work)

    @initialize(rates=st.tuples(*[st.floats(1 - DRIFT, 1 + DRIFT)] * 2))
    def begin(self, rates: tuple[float, float]) -> None:
        self.run_(wipe(self.database))
        self.world = self.run_(World.make(self.database))
        self.run_(self.world.add_cluster("other", {"cpu": 4000, "memory": 8 << 30}))
        self.passed, self.began = 0.0, time.monotonic()
        self.beats = Heartbeats(self.world.ctx, clock=self.now)
        self.machines = {n: Machine(rate) for n, rate in zip(NAMES, rates, strict=True)}
        self.runs: list[int] = []
        self.begun: Counter[AttemptKey] = Counter()
        for name in NAMES:
            self.run_(self._hello(name))
        self.submit()
        self.control_plane_turns()
        for name in NAMES:
            self.agent_turns(name)

    def now(self) -> float:
        """Real seconds, those that only passed in the database included."""
        return self.passed + time.monotonic() - self.began

    def clock(self, name: str) -> float:
        return self.now() * self.machines[name].rate

    # ------------------------------------------------------------ time and people

    @rule(seconds=st.sampled_from([1.0, 7.0, 20.0, 45.0, 61.0, 119.0, 125.0]))
    def time_passes(self, seconds: float) -> None:
        self.passed += seconds
        self.run_(self._age(seconds))

    async def _age(self, seconds: float) -> None:
        async with self.world.ctx.db.transaction() as tx:
            await tx.execute(
                "UPDATE heartbeats SET seen_at = seen_at - $1::float8 * interval '1 second'",
                seconds,
            )

    @rule()
    def submit(self) -> None:
        if len(self.runs) > 4:
            return
        self.runs.append(self.run_(self.world.submit(DOCUMENT)).run)

    @precondition(lambda self: self.runs)
    @rule(which=st.integers(0, 4))
    def cancel(self, which: int) -> None:
        run = self.runs[which % len(self.runs)]
        try:
            self.run_(cancel(self.world.ctx, ADMIN, run))
        except Refusal:
            pass

    # ------------------------------------------------------------ the control plane

    @rule()
    def place(self) -> None:
        async def work() -> None:
            async with self.world.ctx.db.transaction() as tx:
                await tx.execute(
                    "UPDATE queue SET not_before = NULL, xid = pg_current_xact_id()"
                    " WHERE not_before IS NOT NULL"
                )
            await self.world.place()

        self.run_(work())

    @rule()
    def fence(self) -> None:
        self.run_(fence_silent(self.world.ctx))

    @rule()
    def control_plane_turns(self) -> None:
        self.write_heartbeats()
        self.fence()
        self.place()

    @rule()
    def write_heartbeats(self) -> None:
        self.run_(self.beats.write())

    @rule()
    def server_dies(self) -> None:
        """What it had noted and not written is lost."""
        self.beats = Heartbeats(self.world.ctx, clock=self.now)

    # ------------------------------------------------------------ links

    @rule(name=st.sampled_from(NAMES), up=st.booleans(), down=st.booleans())
    def link(self, name: str, up: bool, down: bool) -> None:
        self.machines[name].up, self.machines[name].down = up, down

    # ------------------------------------------------------------ agents

    @rule(name=st.sampled_from(NAMES))
    def agent_restarts(self, name: str) -> None:
        there = self.machines[name]
        there.session, there.since = False, 0
        there.preparing.clear()
        there.flying.clear()

    @rule(name=st.sampled_from(NAMES))
    def agent_turns(self, name: str) -> None:
        """All that an agent does, one after the other; twice, since a lease follows a heartbeat."""
        for _ in range(2):
            self.sync(name)
            self.answer_arrives(name)
            self.write_heartbeats()
        self.start(name)
        self.report(name, lost=False)

    @rule(
        name=st.sampled_from(NAMES),
        fresh=st.booleans(),
        unnoted=st.booleans(),
        seconds=st.sampled_from([61.0, 80.0, 100.0, 121.0]),
        back=st.booleans(),
    )
    def is_cut_off(self, name: str, fresh: bool, unnoted: bool, seconds: float, back: bool) -> None:
        """For as long as a fence takes, or about; the rules apart seldom come to that."""
        there, (other,) = self.machines[name], [other for other in NAMES if other != name]
        if fresh:  # it has taken work on, and not begun it
            self.submit()
            self.place()
            self.sync(name)
            self.answer_arrives(name)
        if unnoted:  # what it was last told rests on a word that got lost
            self.time_passes(45.0)
            self.sync(name)
            self.answer_arrives(name)
            self.server_dies()
        self.link(name, up=False, down=False)
        self.time_passes(seconds)
        self.link(other, up=True, down=True)
        self.agent_turns(other)
        self.control_plane_turns()
        self.agent_turns(other)
        self.no_step_runs_twice_at_once()
        if back:
            self.link(name, up=True, down=True)
            for _ in range(2):
                self.sync(name)
                self.answer_arrives(name)
                self.write_heartbeats()
            if there.session:
                self.start(name)

    @rule(name=st.sampled_from(NAMES))
    def sync(self, name: str) -> None:
        self.run_(self._sync(name))

    async def _sync(self, name: str) -> None:
        there = self.machines[name]
        if not there.up:
            return
        if not there.session:
            await self._hello(name)
            return
        sent, agent = self.clock(name), self.world.agents[name]
        self.beats.note(agent.id)
        try:
            found = await hand_out(self.world.ctx, agent, epoch=there.epoch, since=there.since)
        except Conflict:
            if there.down:
                self.agent_restarts(name)
            return
        # One request at a time: what was not answered in time is not waited for.
        there.flying[:] = [(sent, there.epoch, found)]

    async def _hello(self, name: str) -> None:
        there = self.machines[name]
        await self.world.hello(name, stops_within_s=STOPS_S)
        if there.down:
            there.session, there.since = True, 0
            there.epoch = self.world.epochs[name]
            there.preparing.clear()

    @rule(name=st.sampled_from(NAMES))
    def answer_arrives(self, name: str) -> None:
        there = self.machines[name]
        if not there.flying or not there.down:
            return
        sent, epoch, found = there.flying.pop()
        if not there.session or epoch != there.epoch:
            return
        for order in found.orders:
            if order.begin is None:
                self._end(name, order.key, End(cause=EndCause.CANCELLED))
            elif order.key not in there.programs.keys() | there.finished:
                there.preparing.add(order.key)
        if found.full:
            wanted = {order.key for order in found.orders}
            there.preparing &= wanted
            for key in there.programs.keys() - wanted:
                self._end(name, key, End(cause=EndCause.CANCELLED))
        there.since = max(there.since, found.revision)
        until = sent + found.lease_s
        if found.lease_s > 0 and until > there.until:
            there.term += self.clock(name) >= there.until
            there.until = until

    def _end(self, name: str, key: AttemptKey, end: End) -> None:
        there = self.machines[name]
        there.preparing.discard(key)
        program = there.programs.setdefault(key, Program(leased=False, term=0))
        if program.end is None:
            program.end = end

    @rule(name=st.sampled_from(NAMES))
    def start(self, name: str) -> None:
        """The agent begins what it has prepared, however long that took."""
        there = self.machines[name]
        self.guard()
        while there.preparing:
            key = there.preparing.pop()
            program = Program(leased=key.step != 1, term=there.term)
            there.programs[key] = program
            if program.leased and self.clock(name) >= there.until:
                program.end = LOST
            else:
                self.begun[key] += 1

    @rule(name=st.sampled_from(NAMES))
    def program_finishes(self, name: str) -> None:
        self.guard()
        running = [p for p in self.machines[name].programs.values() if p.end is None]
        for program in running[:1]:
            program.end = OK

    @rule(name=st.sampled_from(NAMES), lost=st.booleans())
    def report(self, name: str, lost: bool) -> None:
        there = self.machines[name]
        self.guard()
        if not (there.up and there.session):
            return
        self.beats.note(self.world.agents[name].id)
        told = {key: program.end or AttemptState.RUNNING for key, program in there.programs.items()}
        for key, what in told.items():
            try:
                self.run_(self.world.report(key, what, name=name))
            except Conflict:
                self.agent_restarts(name)
                return
            if what is not AttemptState.RUNNING and not lost and there.down:
                del there.programs[key]
                there.finished.add(key)

    # ------------------------------------------------------------ what must hold

    def guard(self) -> None:
        """Monitors stop what is leased: as late as they promise, and not undone by a new lease."""
        for name, there in self.machines.items():
            for program in there.programs.values():
                if not program.leased or program.end is not None:
                    continue
                if program.stops_at is None and self.clock(name) >= there.until:
                    program.stops_at = there.until + STOPS_S
                if program.stops_at is not None and self.clock(name) >= program.stops_at:
                    program.end = LOST

    @precondition(lambda self: hasattr(self, "machines"))
    @invariant()
    def no_step_runs_twice_at_once(self) -> None:
        self.guard()
        running: defaultdict[tuple[int, int], list[str]] = defaultdict(list)
        for name, there in self.machines.items():
            for key, program in there.programs.items():
                if program.end is None:
                    running[key.run, key.step].append(f"{key} on {name}")
        assert {k: v for k, v in running.items() if len(v) > 1} == {}

    @precondition(lambda self: hasattr(self, "machines"))
    @invariant()
    def no_attempt_begins_twice(self) -> None:
        assert {key: n for key, n in self.begun.items() if n > 1} == {}

    @precondition(lambda self: hasattr(self, "machines"))
    @invariant()
    def the_rows_add_up(self) -> None:
        async def look() -> dict[str, list[Any]]:
            async with self.world.ctx.db.reading() as tx:
                found = {what: list(await tx.fetch(query)) for what, query in BROKEN.items()}
                known = {r["id"] for r in await tx.fetch("SELECT id FROM runs")}
            assert known == set(self.runs), "an accepted run is lost"
            return {what: rows for what, rows in found.items() if rows}

        assert self.run_(look()) == {}

    def teardown(self) -> None:
        """Once everything is reachable again everything comes to rest."""
        if not hasattr(self, "machines"):
            return
        for name in NAMES:
            self.link(name, up=True, down=True)
        for _ in range(12):
            for name in NAMES:
                for step in (self.sync, self.answer_arrives, self.sync, self.answer_arrives):
                    step(name)
                    self.no_step_runs_twice_at_once()
                self.start(name)
                self.no_step_runs_twice_at_once()
                self.write_heartbeats()
                for _ in range(9):
                    self.program_finishes(name)
                self.report(name, lost=False)
            self.place()
        for run in self.runs:
            assert self.run_(self.world.run_state(run)) in ("succeeded", "cancelled")


@pytest.mark.timeout(300)
def test_no_step_runs_twice_at_once_whatever_is_cut(dsn: str) -> None:
    play(Partitions, dsn, examples=50, steps=30)
