"""Runs, steps and attempts under any order of events, on a real PostgreSQL.

The machine plays people, schedulers that come and go, and an agent whose requests and answers get
lost, doubled and reordered. After every event the rows must tell a story that adds up; at the end
everything must come to rest.
"""

from __future__ import annotations

import asyncio
import random
from collections import Counter
from collections.abc import Coroutine
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
from tests.usecases.world import ADMIN, OK, World, failed
from verderer.core.errors import Conflict, Refusal
from verderer.core.model.attempt import AttemptKey, AttemptState, End, EndCause
from verderer.store.database import Database
from verderer.usecases.agents.hand_out_orders import hand_out
from verderer.usecases.cancel_run import cancel
from verderer.usecases.retry_run import retry

T = TypeVar("T")

DOCUMENTS = (
    "metadata: {name: one}\nsteps:\n- {name: a, command: [x], resources: {requests: {cpu: 1}}}\n",
    "metadata: {name: diamond}\nsteps:\n- {name: a, command: [x], retries: 1}\n"
    "- {name: b, needs: [a], command: [x]}\n- {name: c, needs: [a], command: [x]}\n"
    "- {name: d, needs: [b, c], command: [x], resources: {requests: {cpu: 2}}}\n",
    "metadata: {name: matrix}\nsteps:\n"
    "- {name: m, command: [x], matrix: {i: ['1', '2', '3']}, resources: {requests: {cpu: 1}}}\n"
    "- {name: gather, needs: [m], command: [x]}\n"
    "- {name: tidy, needs: [gather], when: always(), command: [x]}\n",
    "metadata: {name: huge}\nsteps:\n- {name: a, command: [x], resources: {requests: {cpu: 99}}}\n",
)
ENDS = (OK, OK, OK, failed(2), End(cause=EndCause.LOST), End(cause=EndCause.OOM))


class Lives(RuleBasedStateMachine):
    database: ClassVar[Database]
    loop: ClassVar[asyncio.AbstractEventLoop]

    def run_(self, work: Coroutine[Any, Any, T]) -> T:
        return self.loop.run_until_complete(work)

    @initialize()
    def begin(self) -> None:
        self.run_(wipe(self.database))
        self.world = self.run_(World.make(self.database, local={"cpu": 4000}))
        self.runs: list[int] = []
        self.keys: dict[str, int] = {}
        self.held: dict[AttemptKey, str] = {}
        self.launched: Counter[AttemptKey] = Counter()
        self.told: list[tuple[AttemptKey, AttemptState | End]] = []
        self.since = 0

    # ------------------------------------------------------------ people

    @rule(document=st.sampled_from(DOCUMENTS), key=st.sampled_from([None, "k1", "k2"]))
    def submit(self, document: str, key: str | None) -> None:
        try:
            made = self.run_(self.world.submit(document, key=key))
        except Conflict:
            assert key in self.keys
            return
        assert made.created == (key is None or key not in self.keys)
        if key is not None:
            assert self.keys.setdefault(key, made.run) == made.run
        if made.created:
            self.runs.append(made.run)

    @precondition(lambda self: self.runs)
    @rule(data=st.data())
    def cancel(self, data: st.DataObject) -> None:
        run = data.draw(st.sampled_from(self.runs))
        self._may_refuse(cancel(self.world.ctx, ADMIN, run))

    @precondition(lambda self: self.runs)
    @rule(data=st.data(), everything=st.booleans())
    def retry(self, data: st.DataObject, everything: bool) -> None:
        run = data.draw(st.sampled_from(self.runs))
        self._may_refuse(retry(self.world.ctx, ADMIN, run, everything=everything))

    def _may_refuse(self, work: Coroutine[Any, Any, object]) -> None:
        try:
            self.run_(work)
        except Refusal:
            pass

    # ------------------------------------------------------------ schedulers

    @rule()
    def place(self) -> None:
        self.run_(self._place())

    async def _place(self) -> None:
        async with self.world.ctx.db.transaction() as tx:
            await tx.execute(
                "UPDATE queue SET not_before = NULL, xid = pg_current_xact_id()"
                " WHERE not_before IS NOT NULL"
            )
        await self.world.place()

    @rule()
    def another_scheduler_leads(self) -> None:
        old = self.world.placer
        self.run_(self.world.lead())
        if old is not None:
            try:
                self.run_(old.round())
            except Conflict:
                pass

    # ------------------------------------------------------------ the agent

    @rule(whole=st.booleans(), lost=st.booleans())
    def sync(self, whole: bool, lost: bool) -> None:
        since = 0 if whole else self.since
        agent, epoch = self.world.agents["local"], self.world.epochs["local"]
        found = self.run_(hand_out(self.world.ctx, agent, epoch=epoch, since=since))
        if lost:
            return
        self.since = found.revision
        for order in found.orders:
            if order.begin is None:
                if order.key in self.held:
                    self.held[order.key] = "stopping"
                else:
                    self._tell(order.key, End(cause=EndCause.CANCELLED))
            elif order.key not in self.held and order.key not in {k for k, _ in self.told}:
                self.held[order.key] = "running"
                self.launched[order.key] += 1
                self._tell(order.key, AttemptState.STARTING, AttemptState.RUNNING)

    @precondition(lambda self: self.held)
    @rule(data=st.data(), end=st.sampled_from(ENDS))
    def something_ends(self, data: st.DataObject, end: End) -> None:
        key = data.draw(st.sampled_from(sorted(self.held, key=str)))
        if self.held.pop(key) == "stopping":
            end = End(cause=EndCause.CANCELLED)
        self._tell(key, end)

    @precondition(lambda self: self.told)
    @rule(data=st.data())
    def something_is_told_again(self, data: st.DataObject) -> None:
        key, state = data.draw(st.sampled_from(self.told))
        self.run_(self.world.report(key, state))

    @rule()
    def the_agent_restarts(self) -> None:
        self.run_(self.world.hello())
        self.since = 0

    @rule(cpu=st.sampled_from([4000, 8000]))
    def nodes_come(self, cpu: int) -> None:
        self.run_(self.world.nodes("local", {"cpu": cpu}))

    def _tell(self, key: AttemptKey, *states: AttemptState | End) -> None:
        self.told += [(key, state) for state in states]
        assert self.run_(self.world.report(key, *states)) == {}

    # ------------------------------------------------------------ what must hold

    @invariant()
    def the_rows_add_up(self) -> None:
        if hasattr(self, "world"):
            self.run_(self._check())

    async def _check(self) -> None:
        async with self.world.ctx.db.reading() as tx:
            for what, query in BROKEN.items():
                assert await tx.fetch(query) == [], what
        assert all(n == 1 for n in self.launched.values())

    def teardown(self) -> None:
        if hasattr(self, "world"):
            for run in self.runs:
                if self.run_(self.world.run_state(run)) in ("queued", "running"):
                    huge = "huge" in str(self.run_(_name(self.database, run)))
                    if huge or random.random() < 0.5:
                        self._may_refuse(cancel(self.world.ctx, ADMIN, run))
            self._come_to_rest()

    def _come_to_rest(self) -> None:
        for _ in range(40):
            self.place()
            self.sync(whole=True, lost=False)
            for key in list(self.held):
                stopping = self.held.pop(key) == "stopping"
                self._tell(key, End(cause=EndCause.CANCELLED) if stopping else OK)
            if all(self.run_(self.world.run_state(r)) in FINAL for r in self.runs):
                break
        self.run_(self._check())
        states = {run: self.run_(self.world.run_state(run)) for run in self.runs}
        assert set(states.values()) <= FINAL, states
        assert self.run_(self.world.reserved()) == {}


FINAL = {"succeeded", "failed", "cancelled"}


async def _name(database: Database, run: int) -> str:
    async with database.reading() as tx:
        return str(await tx.fetchval("SELECT name FROM runs WHERE id = $1", run))


@pytest.mark.timeout(300)
def test_the_life_of_runs_adds_up_under_any_order_of_events(dsn: str) -> None:
    play(Lives, dsn, examples=25, steps=40)
