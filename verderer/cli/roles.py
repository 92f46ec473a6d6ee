"""What each role's process does, from its settings to its end.

A role imports only what it needs: an agent knows neither the database nor the web.
"""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Coroutine
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from verderer.settings import Settings


def server(settings: Settings) -> None:
    """Answer people, programs and agents until a signal ends it."""
    from verderer.cli.serving import serve

    serve(settings)


def scheduler(settings: Settings) -> None:
    """Compete to lead, and place work while leading."""
    _run(_until_signal(_schedule(settings)))


async def _schedule(settings: Settings) -> None:
    from verderer.cli.assembly import (
        check_schema,
        check_store,
        holder,
        objects_config,
        open_context,
    )
    from verderer.loops.fences import run_fences
    from verderer.loops.janitor import run_janitor
    from verderer.loops.placement import run_placement
    from verderer.objects.store import open_store

    store = open_store(objects_config(settings))
    async with open_context(settings, role="scheduler") as ctx:
        await check_schema(ctx)
        await check_store(store)
        me, given = holder(), settings.scheduler
        place = run_placement(ctx, holder=me, lease_s=given.lease_s, tick_s=given.tick_s)
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(place)
            tasks.create_task(run_fences(ctx, holder=me, lease_s=given.lease_s))
            tasks.create_task(run_janitor(ctx, store, holder=me))


def migrate(settings: Settings, *, post: bool) -> None:
    """Bring the database to this release's schema; with `post` past what the last one needs."""
    import structlog

    from verderer.cli.assembly import RELEASE, direct_database_url
    from verderer.store.migrate import migrate as bring_up

    applied = asyncio.run(bring_up(direct_database_url(settings), post=post, ours=RELEASE))
    if applied:
        structlog.get_logger().info("database migrated", migrations=applied)


def bootstrap(settings: Settings) -> tuple[str, str] | None:
    """Make the first administrator, and the cluster of this machine's agent where it has one.

    Return the administrator's e-mail and one-time password the first time, else None.
    """
    return asyncio.run(_bootstrap(settings))


def recover(settings: Settings, email: str) -> tuple[str, str]:
    """Let an administrator in again; e-mail and one-time password."""
    return asyncio.run(_recover(settings, email))


async def _recover(settings: Settings, email: str) -> tuple[str, str]:
    from verderer.cli.assembly import open_context
    from verderer.usecases.people import recover as recovering

    async with open_context(settings, role="recover") as ctx:
        made = await recovering.recover(ctx, email)
    return made.user.email, made.password


async def _bootstrap(settings: Settings) -> tuple[str, str] | None:
    from verderer.cli.assembly import open_context
    from verderer.cli.data_folder import write_private
    from verderer.core.model.actor import Actor, ActorKind
    from verderer.usecases.clusters import create_cluster_credential
    from verderer.usecases.people.bootstrap import bootstrap as make_first

    async with open_context(settings, role="migrate") as ctx:
        first = await make_first(ctx)
        credential = settings.agent_credential_file
        kind = settings.agent.kind
        if (kind != "local" or settings.local_cluster.enabled) and not credential.exists():
            actor = Actor(kind=ActorKind.USER, name="bootstrap", platform_admin=True)
            token = await create_cluster_credential(ctx, actor, settings.agent.cluster, kind)
            credential.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            write_private(credential, token)
    return (first.email, first.password) if first else None


def _run(work: Coroutine[Any, Any, Any]) -> Any:
    import uvloop

    return uvloop.run(work)


async def _until_signal(work: Coroutine[Any, Any, None]) -> None:
    """Run until it ends or somebody asks the process to end."""
    task = asyncio.ensure_future(work)
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, task.cancel)
    try:
        await task
    except asyncio.CancelledError:
        if not task.cancelled():
            raise
