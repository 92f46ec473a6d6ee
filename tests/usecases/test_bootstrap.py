"""The first start: one admin, one project, once."""

from __future__ import annotations

import asyncio

from tests.rig.people import make_context
from verderer.core.model.actor import Role
from verderer.store.database import Database
from verderer.usecases.authenticate import authenticate
from verderer.usecases.context import Context
from verderer.usecases.people.account import read_account
from verderer.usecases.people.bootstrap import bootstrap
from verderer.usecases.people.login import login


async def test_the_first_start_makes_an_admin_who_must_choose_a_password(ctx: Context) -> None:
    first = await bootstrap(ctx)
    assert first is not None
    session = await login(ctx, email=first.email, password=first.password)
    assert session.user.must_change
    actor = await authenticate(ctx, session=session.token)
    assert actor.must_change
    assert actor.platform_admin
    account = await read_account(ctx, actor)
    assert account.roles == {"demo": Role.ADMIN}


async def test_a_later_start_makes_nothing(ctx: Context) -> None:
    assert await bootstrap(ctx) is not None
    assert await bootstrap(ctx) is None


async def test_many_first_starts_at_once_make_one_admin(database: Database) -> None:
    results = await asyncio.gather(*(bootstrap(make_context(database)) for _ in range(6)))
    assert len([r for r in results if r is not None]) == 1
    async with database.reading() as connection:
        assert await connection.fetchval("SELECT count(*) FROM users") == 1
        assert await connection.fetchval("SELECT count(*) FROM projects") == 1


async def test_every_instance_draws_its_own_password(database: Database) -> None:
    first = await bootstrap(make_context(database))
    async with database.transaction() as tx:
        await tx.execute("DELETE FROM projects")
        await tx.execute("DELETE FROM users")
    second = await bootstrap(make_context(database))
    assert first is not None
    assert second is not None
    assert first.password != second.password
