"""A real server on a free port, steps with their tokens, and MLflow's client in a thread."""

from __future__ import annotations

import asyncio
import contextlib
import socket
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any, TypeVar

import uvicorn
from litestar import Litestar

from tests.rig.people import Cast
from verderer.api.app import build_app
from verderer.api.mlflow.app import mlflow_handlers
from verderer.core.model.attempt import AttemptKey
from verderer.objects.config import ObjectsConfig
from verderer.objects.grants import LocalGrants
from verderer.objects.store import ObjectStore, open_store
from verderer.usecases.context import Context
from verderer.usecases.step_tokens import make_step_token

T = TypeVar("T")

RUN_ID = 0x0123_4567_89AB_CDEF

_STEP = """
    WITH document AS (
        INSERT INTO documents (sha256, body) VALUES (sha256($1::bytea), 'name: train')
        ON CONFLICT (sha256) DO UPDATE SET body = excluded.body RETURNING sha256),
    run AS (
        INSERT INTO runs (id, project_id, name, document, state, steps, open, actor)
        SELECT $2, p.id, $3, document.sha256, 'running', 1, 1, 'user:member@example.org'
          FROM projects AS p, document WHERE p.name = $4 RETURNING id),
    shape AS (
        INSERT INTO shapes (digest, requests, nodes) VALUES (sha256($1::bytea), '{}', 1)
        ON CONFLICT (digest) DO UPDATE SET nodes = 1 RETURNING id),
    step AS (
        INSERT INTO steps (id, run_id, idx, name, template, shape_id, state, waits, attempts)
        SELECT $2, run.id, 0, $5, 0, shape.id, 'active', 0, 1 FROM run, shape RETURNING id)
    INSERT INTO attempts (step_id, number, cluster_id, state, revision)
    SELECT step.id, 1, c.id, 'running', 1 FROM step, clusters AS c LIMIT 1
"""


@dataclass(frozen=True)
class Tracking:
    """The application, everybody who may ask it, and where its files are."""

    app: Litestar
    ctx: Context
    cast: Cast
    objects: ObjectStore
    folder: Path


def make_app(ctx: Context, objects: ObjectStore) -> Litestar:
    grants = LocalGrants(public_url=ctx.public_url, instance_key=ctx.key, clock=lambda: 0.0)
    return build_app(context=ctx, objects=objects, grants=grants, extra_handlers=mlflow_handlers())


def make_tracking(ctx: Context, cast: Cast, folder: Path) -> Tracking:
    objects = open_store(ObjectsConfig(url=str(folder)))
    return Tracking(make_app(ctx, objects), ctx, cast, objects, folder)


async def make_step(
    ctx: Context,
    *,
    run: int = RUN_ID,
    pipeline: str = "train",
    step: str = "fit",
    project: str = "ours",
) -> str:
    """A live attempt of a step; return its token."""
    async with ctx.db.transaction() as tx:
        await tx.execute(_STEP, pipeline.encode(), run, pipeline, project, step)
        found = await tx.fetchval("SELECT id FROM projects WHERE name = $1", project)
    return make_step_token(ctx, AttemptKey(run, 0, 1), project=found, life=timedelta(hours=1))


@contextlib.asynccontextmanager
async def serving(app: Litestar) -> AsyncIterator[str]:
    """Serve over a socket, on a free port of this machine; give the address."""
    config = uvicorn.Config(app, log_level="warning", lifespan="on", access_log=False)
    server = uvicorn.Server(config)
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        listening.listen(128)
        # Not `serve`, which takes the signals of the process that runs the tests.
        task = asyncio.create_task(server._serve(sockets=[listening]))
        try:
            async with asyncio.timeout(10):
                while not server.started:
                    await asyncio.sleep(0.01)
            yield f"http://127.0.0.1:{listening.getsockname()[1]}"
        finally:
            server.should_exit = True
            await task


async def in_thread(work: Callable[..., T], *arguments: Any) -> T:
    """Run what blocks beside the server."""
    return await asyncio.to_thread(work, *arguments)
