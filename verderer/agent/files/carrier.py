"""Carries the files of one step from beside its program: once before it, once after it.

Run by `verderer carry` in containers of the step's own pod. It holds a ticket for this step's
inputs and outputs and no credential of anything; an outage of the store is waited out.
"""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import AsyncIterator, Coroutine
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import TypeVar

import structlog

from verderer.agent.files.inputs import InputUnavailable, fetch_inputs
from verderer.agent.files.outputs import OutputUnavailable, store_outputs
from verderer.agent.files.transfers import Granter, Transfers
from verderer.core.errors import VerdererError
from verderer.wire.carry import Carried, CarryPlan
from verderer.wire.carry_client import CarryClient
from verderer.wire.object_client import ObjectClient

log = structlog.get_logger("verderer.carry")

T = TypeVar("T")
MAX_ERROR = 1_000


class _Line:
    """What a session is to an agent."""

    epoch = 0

    def __init__(self, client: CarryClient) -> None:
        self.client = client

    async def call(self, request: Coroutine[object, object, T]) -> T:
        """Await one request."""
        return await request


async def fetch(plan: CarryPlan, workspace: str) -> Carried:
    """Put the inputs into `workspace`."""
    try:
        async with _transfers(plan) as transfers:
            for one in plan.inputs:
                log.info("fetching", input=one.name, path=one.path)
                await fetch_inputs(transfers, workspace, [one])
    except InputUnavailable as error:
        return Carried(error=str(error)[:MAX_ERROR])
    except VerdererError as error:
        return Carried(error=f"inputs cannot be fetched: {error.message}"[:MAX_ERROR])
    return Carried()


async def store(plan: CarryPlan, workspace: str) -> Carried:
    """Store the outputs found in `workspace`."""
    rows = []
    try:
        async with _transfers(plan) as transfers:
            for one in plan.outputs:
                log.info("storing", output=one.name, path=one.path)
                (done,) = await store_outputs(transfers, workspace, [one])
                log.info("stored", output=one.name, bytes=done.size, files=done.files)
                rows.append((done.size, done.files, done.sha256, done.key.endswith("/")))
    except OutputUnavailable as error:
        return Carried(error=str(error)[:MAX_ERROR])
    except VerdererError as error:
        return Carried(error=f"outputs cannot be stored: {error.message}"[:MAX_ERROR])
    return Carried(outputs=tuple(rows))


@asynccontextmanager
async def _transfers(plan: CarryPlan) -> AsyncIterator[Transfers]:
    async with AsyncExitStack() as stack:
        ca_file = None
        if plan.ca:
            folder = stack.enter_context(tempfile.TemporaryDirectory())
            ca_file = str(Path(folder, "ca.pem"))
            await asyncio.to_thread(Path(ca_file).write_text, plan.ca, "utf-8")
        client = await stack.enter_async_context(
            CarryClient(plan.server_url, plan.ticket, ca_file=ca_file)
        )
        objects = await stack.enter_async_context(ObjectClient(plan.server_url, ca_file=ca_file))
        yield Transfers(Granter(_Line(client)), objects)
