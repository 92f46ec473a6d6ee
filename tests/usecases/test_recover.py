"""Letting an administrator in again from beside the database."""

from __future__ import annotations

import pytest

from tests.rig.people import SYSTEM, Cast, make_person
from tests.usecases.test_login import audit_of
from verderer.core.errors import NotAuthenticated
from verderer.store.database import Database
from verderer.usecases.authenticate import authenticate
from verderer.usecases.context import Context
from verderer.usecases.people.login import login
from verderer.usecases.people.recover import recover
from verderer.usecases.people.users import deactivate_user


async def test_a_deactivated_member_becomes_an_admin_who_may_log_in(
    ctx: Context, cast: Cast, database: Database
) -> None:
    lost = await make_person(ctx, "lost")
    await deactivate_user(ctx, SYSTEM, lost.email)
    made = await recover(ctx, lost.email.upper())
    assert (made.user.active, made.user.platform_admin, made.user.must_change) == (
        True,
        True,
        True,
    )
    session = await login(ctx, email=lost.email, password=made.password, origin="192.0.2.1")
    actor = await authenticate(ctx, session=session.token)
    assert actor.must_change
    assert await audit_of(database, "account.recovered") == [
        ("system:operator", f"user:{lost.email}", "ok")
    ]


async def test_sessions_of_before_end_and_the_old_password_is_void(
    ctx: Context, cast: Cast
) -> None:
    first = await recover(ctx, "new@example.org")
    session = await login(ctx, email="new@example.org", password=first.password, origin="192.0.2.1")
    await recover(ctx, "new@example.org")
    with pytest.raises(NotAuthenticated):
        await authenticate(ctx, session=session.token)
    with pytest.raises(NotAuthenticated):
        await login(ctx, email="new@example.org", password=first.password, origin="192.0.2.1")
