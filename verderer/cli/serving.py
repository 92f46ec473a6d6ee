"""The server's process: one application of every door, on one port."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import time
from collections.abc import AsyncIterator, Sequence

import uvicorn
import uvloop
from litestar import Litestar
from litestar.types import ControllerRouterHandler

from verderer.api.agents.object_routes import objects_route
from verderer.api.agents.routes import ROUTES as AGENT_ROUTES
from verderer.api.app import build_app
from verderer.api.metrics import metrics_page
from verderer.api.mlflow.app import mlflow_handlers
from verderer.api.workloads import governance_handlers, workload_handlers
from verderer.cli.assembly import check_store, objects_config, open_context, secret_key
from verderer.cli.listening import listen
from verderer.cli.workers import Workers
from verderer.core.version import VERSION
from verderer.objects.grants import open_grants
from verderer.objects.store import open_store
from verderer.settings import Settings
from verderer.usecases.agents.heartbeats import Heartbeats
from verderer.usecases.context import Context
from verderer.usecases.submit_run import Submitter
from verderer.web.app import web_handlers


@contextlib.asynccontextmanager
async def application(settings: Settings, context: Context) -> AsyncIterator[Litestar]:
    """The application with what runs beside it."""
    store = open_store(objects_config(settings))
    await check_store(store)
    submitter = Submitter(context)
    # Relative addresses: an agent reaches them the way it reaches us.
    grants = open_grants(store, public_url="", instance_key=secret_key(settings), clock=time.time)
    handlers: Sequence[ControllerRouterHandler] = [
        *AGENT_ROUTES,
        objects_route,
        metrics_page,
        *workload_handlers(),
        *governance_handlers(),
        *mlflow_handlers(),
        *web_handlers(context=context, submitter=submitter, objects=store, version=VERSION),
    ]
    app = build_app(context=context, objects=store, grants=grants, extra_handlers=handlers)
    app.state.heartbeats = Heartbeats(context)
    app.state.submitter = submitter
    app.state.metrics_enabled = settings.metrics.enabled
    app.state.metrics_token = settings.metrics.token.reveal() if settings.metrics.token else ""
    beating = asyncio.create_task(app.state.heartbeats.run(), name="heartbeats")
    try:
        yield app
    finally:
        beating.cancel()
        await asyncio.gather(beating, return_exceptions=True)


def serve(settings: Settings) -> None:
    """Answer requests until SIGINT or SIGTERM, in as many processes as are configured.

    Raises:
        Refusal: the address cannot be listened on, or other settings cannot work.
        Fault: PostgreSQL cannot be reached; with several workers each says so and tries again.
    """
    listening = listen(settings.server.host, settings.server.port)

    def work() -> None:
        uvloop.run(_serve(settings, listening))

    if settings.server.workers == 1:
        work()
    else:
        Workers(settings.server.workers, work).run()


async def _serve(settings: Settings, listening: socket.socket) -> None:
    async with (
        open_context(settings, role="server") as context,
        application(settings, context) as app,
    ):
        config = uvicorn.Config(
            app,
            log_config=None,
            access_log=False,
            lifespan="on",
            http="httptools",
            ws="none",
            server_header=False,
            timeout_graceful_shutdown=int(settings.server.stop_within_s) or 1,
        )
        await uvicorn.Server(config).serve(sockets=[listening])
