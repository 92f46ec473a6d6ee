"""The whole users' API over a world whose scheduler and agent are moved by hand."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any

import httpx2
from litestar import Litestar

from tests.rig.people import Cast, Person
from tests.usecases.world import World
from verderer.api.agents.object_routes import objects_route
from verderer.api.app import build_app
from verderer.api.workloads import governance_handlers, workload_handlers
from verderer.core.model.attempt import AttemptKey, AttemptState, End
from verderer.core.model.places import log_prefix
from verderer.objects.grants import LocalGrants
from verderer.objects.logs import Chunk as Bytes
from verderer.objects.logs import Gap, Mark, encode_chunk
from verderer.objects.store import ObjectStore
from verderer.usecases.agents.receive_logs import Chunk, receive_chunks
from verderer.usecases.context import Context

ONE = "metadata: {name: one}\nsteps:\n  - name: only\n    command: [echo, hello]\n"
CHAIN = """
metadata: {name: chain, labels: {team: vision}}
parameters: {epochs: 3}
steps:
  - name: first
    command: [echo, first]
  - name: second
    needs: [first]
    command: [echo, second]
"""
HUGE = """
metadata: {name: huge}
steps:
  - name: big
    command: [echo]
    resources: {requests: {nvidia.com/gpu: 8}}
  - name: medium
    command: [echo]
    resources: {requests: {cpu: 500}}
"""


def build(ctx: Context, objects: ObjectStore, submitter: Any) -> Litestar:
    """The application with these routes and nobody else's."""
    grants = LocalGrants(public_url="", instance_key=ctx.key, clock=time.time)
    app = build_app(
        context=ctx,
        objects=objects,
        grants=grants,
        extra_handlers=[*workload_handlers(), *governance_handlers(), objects_route],
    )
    app.state.submitter = submitter
    return app


@dataclass
class Platform:
    """One application and everything to move it with."""

    world: World
    objects: ObjectStore
    cast: Cast
    client: httpx2.AsyncClient
    app: Litestar

    async def ask(
        self, person: Person, method: str, path: str, body: object = None, **more: Any
    ) -> httpx2.Response:
        headers = person.bearer | more.pop("headers", {})
        kind = {"json": body} if body is not None else {}
        return await self.client.request(method, f"/api/v1{path}", headers=headers, **kind, **more)

    async def submit(self, text: str = CHAIN, **more: Any) -> str:
        """A run of the project `ours`; its id."""
        body = {"pipeline": text, "project": "ours", **more}
        answer = await self.ask(self.cast.member, "POST", "/runs", body)
        assert answer.status_code == 201, answer.text
        return str(answer.json()["id"])

    async def start(self) -> list[AttemptKey]:
        """Place what can be placed and let it run."""
        await self.world.place()
        keys = [order.key for order in await self.world.orders()]
        for key in keys:
            await self.world.report(key, AttemptState.RUNNING)
        return keys

    async def end(self, key: AttemptKey, end: End, **more: Any) -> None:
        await self.world.report(key, end, **more)

    async def write_log(
        self,
        key: AttemptKey,
        data: bytes,
        *,
        sequence: int = 0,
        first_byte: int = 0,
        gaps: tuple[Gap, ...] = (),
        complete: bool = True,
        replica: int = 0,
    ) -> None:
        """One chunk of output, stored and reported as an agent does it."""
        async with self.world.ctx.db.reading() as tx:
            project = await tx.fetchval("SELECT project_id FROM runs WHERE id = $1", key.run)
        marks = (Mark(first_byte, 1_764_500_000_123),)
        chunk = Bytes(first_byte, data, marks, gaps)
        name = f"{log_prefix(project, key)}{replica}/{sequence:08d}"
        await self.objects.put(name, encode_chunk(chunk))
        fact = Chunk(
            key=key,
            replica=replica,
            sequence=sequence,
            first_byte=first_byte,
            size=len(data),
            lines=chunk.lines,
            lost=sum(gap.lost for gap in gaps),
            first_at=None,
            last_at=None,
            sealed=True,
            complete=complete,
        )
        await receive_chunks(
            self.world.ctx,
            self.world.agents["local"],
            epoch=self.world.epochs["local"],
            chunks=[fact],
        )
