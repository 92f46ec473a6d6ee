"""A control plane without processes: use cases on a real database, driven step by step."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from verderer.core.credentials import hash_token
from verderer.core.model.actor import Actor, ActorKind
from verderer.core.model.attempt import AttemptKey, AttemptState, End, EndCause
from verderer.core.model.cluster import NodeReport
from verderer.core.model.resources import Resources
from verderer.store.database import Database
from verderer.store.tables import clusters, leases, projects
from verderer.store.wakeups import Wakeups
from verderer.usecases.agents.agent_session import hello, receive_nodes
from verderer.usecases.agents.hand_out_orders import Order, hand_out
from verderer.usecases.agents.receive_report import Fact, receive_facts
from verderer.usecases.context import Context
from verderer.usecases.place_runs import LEASE, Placer, Round
from verderer.usecases.submit_run import Submission, Submitted, Submitter

ADMIN = Actor(kind=ActorKind.USER, name="root@example.org", platform_admin=True)
OK = End(cause=EndCause.EXIT, exit_code=0)


def failed(code: int = 1) -> End:
    return End(cause=EndCause.EXIT, exit_code=code)


@dataclass
class World:
    """Everything by hand: nothing happens between two calls."""

    ctx: Context
    submitter: Submitter
    agents: dict[str, Actor] = field(default_factory=dict)
    epochs: dict[str, int] = field(default_factory=dict)
    placer: Placer | None = None

    @classmethod
    async def make(cls, database: Database, *, local: Mapping[str, int] | None = None) -> World:
        ctx = Context(
            db=database,
            wakeups=Wakeups(database),
            clock=lambda: datetime.now(UTC),
            chance=lambda: random.getrandbits(64),
            key=b"k" * 32,
            public_url="http://127.0.0.1:8642",
        )
        world = cls(ctx, Submitter(ctx))
        async with database.transaction() as tx:
            await projects.add(tx, name="demo", title="")
        await world.add_cluster("local", local or {"cpu": 4000, "memory": 8 << 30})
        return world

    async def add_cluster(self, name: str, capacity: Mapping[str, int]) -> None:
        async with self.ctx.db.transaction() as tx:
            number = await clusters.put(tx, name, "local", hash_token(f"vrd_a_{name}"))
        assert number is not None
        self.agents[name] = Actor(kind=ActorKind.AGENT, id=number, name=name)
        await self.hello(name)
        await self.nodes(name, capacity)

    async def hello(
        self,
        name: str = "local",
        instance: str | None = None,
        stops_within_s: float | None = None,
    ) -> None:
        instance = instance or f"{random.getrandbits(64):x}"
        self.epochs[name] = await hello(
            self.ctx,
            self.agents[name],
            instance=instance,
            version="test",
            stops_within_s=stops_within_s,
        )

    async def nodes(self, name: str, capacity: Mapping[str, int]) -> None:
        node = NodeReport(
            name=f"{name}-0",
            ready=True,
            allocatable=Resources.of(capacity),
            labels={},
            cpu_load=None,
            memory_free=None,
        )
        await receive_nodes(self.ctx, self.agents[name], epoch=self.epochs[name], nodes=[node])

    async def submit(
        self, document: str, *, key: str | None = None, project: str = "demo", **parameters: str
    ) -> Submitted:
        submission = Submission(
            document=document.encode(),
            parameters=parameters,
            project=project,
            idempotency_key=key,
        )
        return await self.submitter.submit(ADMIN, submission)

    async def lead(self) -> None:
        """Begin a new term, whoever led before."""
        from datetime import timedelta

        async with self.ctx.db.transaction() as tx:
            await tx.execute("UPDATE leases SET expires_at = now()")
            holder = f"{random.getrandbits(64):x}"
            epoch = await leases.take(tx, LEASE, holder, timedelta(minutes=10))
        assert epoch is not None
        self.placer = Placer(self.ctx, epoch=epoch)

    async def place(self) -> Round:
        if self.placer is None:
            await self.lead()
        assert self.placer is not None
        return await self.placer.round()

    async def orders(self, name: str = "local", since: int = 0) -> Sequence[Order]:
        agent, epoch = self.agents[name], self.epochs[name]
        return (await hand_out(self.ctx, agent, epoch=epoch, since=since)).orders

    async def report(
        self,
        key: AttemptKey,
        *states: AttemptState | End,
        name: str = "local",
        outputs: Sequence[tuple[str, str, int, int, str]] = (),
    ) -> dict[AttemptKey, str]:
        facts = [
            Fact(
                key=key,
                state=s.state if isinstance(s, End) else s,
                end=s if isinstance(s, End) else None,
                at=self.ctx.clock(),
                outputs=tuple(outputs) if isinstance(s, End) else (),
            )
            for s in states
        ]
        return await receive_facts(
            self.ctx, self.agents[name], epoch=self.epochs[name], facts=facts
        )

    async def step_states(self, run: int) -> dict[str, str]:
        async with self.ctx.db.reading() as tx:
            rows = await tx.fetch(
                "SELECT name, state::text FROM steps WHERE run_id = $1 ORDER BY idx", run
            )
        return {row["name"]: row["state"] for row in rows}

    async def run_state(self, run: int) -> str:
        async with self.ctx.db.reading() as tx:
            return str(await tx.fetchval("SELECT state::text FROM runs WHERE id = $1", run))

    async def reasons(self, run: int) -> list[dict[str, Any]]:
        """Why the run's only step waits, as placement wrote it."""
        async with self.ctx.db.reading() as tx:
            found = await tx.fetchval(
                "SELECT reasons FROM lane_holds JOIN queue USING"
                " (project_id, shape_id, resource_group_id) WHERE run_id = $1",
                run,
            )
        return list(found)

    async def reserved(self) -> dict[str, int]:
        async with self.ctx.db.reading() as tx:
            rows = await tx.fetch(
                "SELECT resource, sum(reserved)::bigint AS n FROM capacity GROUP BY 1"
            )
        return {row["resource"]: row["n"] for row in rows if row["n"]}
