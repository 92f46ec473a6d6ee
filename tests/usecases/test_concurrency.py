"""Many schedulers, agents and people at once: what is reserved never passes what there is."""

from __future__ import annotations

import asyncio
import random

import pytest

from tests.rig.invariants import BROKEN
from tests.usecases.world import ADMIN, OK, World, failed
from verderer.core.errors import Conflict, Fault, Refusal
from verderer.core.model.attempt import AttemptState
from verderer.store.database import Database
from verderer.usecases.agents.hand_out_orders import hand_out
from verderer.usecases.agents.receive_report import Fact, receive_facts
from verderer.usecases.cancel_run import cancel
from verderer.usecases.place_runs import Placer

DOCUMENT = (
    "metadata: {name: storm}\nsteps:\n"
    "- {name: a, command: [x], resources: {requests: {cpu: 700m}}}\n"
    "- {name: b, needs: [a], command: [x], retries: 1, resources: {requests: {cpu: 300m}}}\n"
    "- {name: c, needs: [a], command: [x], resources: {requests: {cpu: '1'}}}\n"
)
SECONDS = 4.0
OVER = "SELECT resource FROM capacity WHERE reserved > allocatable"


class Storm:
    """Everybody works as fast as they can until the time is over."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.over = False
        self.runs: list[int] = []
        self.checks = 0

    async def submit(self) -> None:
        while not self.over:
            made = await self.world.submit(DOCUMENT)
            self.runs.append(made.run)
            await asyncio.sleep(random.random() * 0.02)

    async def cancel(self) -> None:
        while not self.over:
            if self.runs:
                try:
                    await cancel(self.world.ctx, ADMIN, random.choice(self.runs))
                except (Refusal, Fault):
                    pass
            await asyncio.sleep(random.random() * 0.05)

    async def place(self, placer: Placer) -> None:
        while not self.over:
            try:
                await placer.round()
            except Fault:
                continue
            await asyncio.sleep(random.random() * 0.01)

    async def serve(self, name: str) -> None:
        agent, epoch = self.world.agents[name], self.world.epochs[name]
        while not self.over:
            try:
                found = await hand_out(self.world.ctx, agent, epoch=epoch, since=0)
                facts = []
                for order in random.sample(found.orders, min(5, len(found.orders))):
                    end = OK if order.begin else failed(1)
                    end = random.choice([OK, OK, end, failed(3)])
                    facts.append(Fact(key=order.key, state=AttemptState.RUNNING))
                    facts.append(Fact(key=order.key, state=end.state, end=end))
                await receive_facts(self.world.ctx, agent, epoch=epoch, facts=facts)
            except Fault:
                continue
            await asyncio.sleep(0)

    async def watch(self) -> None:
        """All rows at one instant, again and again."""
        while not self.over:
            async with (
                self.world.ctx.db.reading() as tx,
                tx.transaction(isolation="repeatable_read"),
            ):
                assert await tx.fetch(OVER) == [], "more is reserved than there is"
                for what, query in BROKEN.items():
                    assert await tx.fetch(query) == [], what
            self.checks += 1
            await asyncio.sleep(0.1)


@pytest.mark.timeout(120)
async def test_nothing_is_overcommitted_at_any_instant_by_any_number_of_schedulers(
    dsn: str,
) -> None:
    database = await Database.open(dsn, size=12)
    try:
        world = await World.make(database, local={"cpu": 5000})
        await world.add_cluster("other", {"cpu": 3000})
        await world.lead()
        assert world.placer is not None
        epoch = world.placer._epoch
        storm = Storm(world)
        work = [
            *(storm.submit() for _ in range(3)),
            *(storm.place(Placer(world.ctx, epoch=epoch)) for _ in range(3)),
            *(storm.serve(name) for name in ("local", "other", "other")),
            storm.cancel(),
            storm.watch(),
        ]
        tasks = [asyncio.create_task(one) for one in work]
        done, _ = await asyncio.wait(tasks, timeout=SECONDS, return_when="FIRST_EXCEPTION")
        storm.over = True
        await asyncio.gather(*tasks)
        assert not [t for t in done if t.exception()]
        assert storm.checks >= 3
        assert len(storm.runs) > 20
    finally:
        await database.close()


async def test_a_deadlock_or_a_lost_connection_is_a_fault_that_may_be_tried_again(
    database: Database,
) -> None:
    with pytest.raises(Fault):
        async with database.transaction() as tx:
            await tx.execute("SELECT pg_terminate_backend(pg_backend_pid())")
    await database.ping()
    with pytest.raises(Conflict):
        async with database.transaction() as tx:
            await tx.execute("INSERT INTO projects (name) VALUES ('twice'), ('twice')")
