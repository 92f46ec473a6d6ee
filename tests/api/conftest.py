"""The application over the test's database, asked without a network."""

from __future__ import annotations

from collections.abc import AsyncIterator

import httpx2
import pytest
from litestar import Litestar

from tests.api.platform import Platform, build
from tests.rig.people import Cast, make_cast, make_context
from tests.usecases.world import World
from verderer.api.app import build_app
from verderer.objects.config import ObjectsConfig
from verderer.objects.grants import LocalGrants
from verderer.objects.store import open_store
from verderer.store.database import Database
from verderer.usecases.context import Context


@pytest.fixture
def ctx(database: Database) -> Context:
    return make_context(database)


@pytest.fixture
async def cast(ctx: Context) -> Cast:
    return await make_cast(ctx)


@pytest.fixture
def app(ctx: Context) -> Litestar:
    """Our own routes alone; what others mount is tested with it."""
    grants = LocalGrants(public_url=ctx.public_url, instance_key=ctx.key, clock=lambda: 0.0)
    return build_app(context=ctx, objects=open_store(ObjectsConfig(url="memory://")), grants=grants)


@pytest.fixture
async def client(app: Litestar) -> AsyncIterator[httpx2.AsyncClient]:
    transport = httpx2.ASGITransport(app=app)
    async with httpx2.AsyncClient(transport=transport, base_url="http://verderer.test") as made:
        yield made


@pytest.fixture
async def platform(database: Database) -> AsyncIterator[Platform]:
    """Runs, pipelines and clusters, in the projects `ours` and `theirs`."""
    world = await World.make(database)
    cast = await make_cast(world.ctx)
    objects = open_store(ObjectsConfig(url="memory://"))
    app = build(world.ctx, objects, world.submitter)
    transport = httpx2.ASGITransport(app=app)
    async with httpx2.AsyncClient(transport=transport, base_url="http://verderer.test") as made:
        yield Platform(world=world, objects=objects, cast=cast, client=made, app=app)
