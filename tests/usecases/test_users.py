"""What platform admins do with people, and what nobody may do."""

from __future__ import annotations

import asyncio

import pytest

from tests.rig.people import SYSTEM, Cast, make_person
from verderer.core.errors import Conflict, Invalid, NotAllowed, NotFound
from verderer.store.database import Database
from verderer.usecases.authenticate import authenticate
from verderer.usecases.context import Context
from verderer.usecases.people.users import (
    activate_user,
    create_user,
    deactivate_user,
    list_users,
    read_user,
    reset_password,
    set_platform_admin,
)


async def test_an_account_starts_with_a_one_time_password(ctx: Context) -> None:
    made = await create_user(ctx, SYSTEM, email="Ana@Example.org ", name="Ana")
    assert made.user.email == "ana@example.org"
    assert made.user.must_change
    assert made.user.active
    assert len(made.password) == 23


async def test_an_address_is_taken_once(ctx: Context) -> None:
    await create_user(ctx, SYSTEM, email="ana@example.org")
    with pytest.raises(Conflict):
        await create_user(ctx, SYSTEM, email="ANA@example.org")


@pytest.mark.parametrize(
    ("email", "name"),
    [("no address", "x"), ("a@b", "line\nbreak"), ("a@b", "x" * 201), ("a@b\x00", "")],
)
async def test_a_malformed_account_is_refused(ctx: Context, email: str, name: str) -> None:
    with pytest.raises(Invalid):
        await create_user(ctx, SYSTEM, email=email, name=name)


async def test_accounts_are_listed_by_address_page_by_page(ctx: Context, cast: Cast) -> None:
    root = await authenticate(ctx, bearer=cast.root.token)
    first = await list_users(ctx, root, limit=2)
    second = await list_users(ctx, root, after=first[-1].email, limit=2)
    assert [u.name for u in first + second] == ["admin", "member", "reader", "root"]


async def test_nobody_locks_himself_out(ctx: Context, cast: Cast) -> None:
    root = await authenticate(ctx, bearer=cast.root.token)
    for act in (
        deactivate_user(ctx, root, cast.root.email),
        set_platform_admin(ctx, root, cast.root.email, admin=False),
    ):
        with pytest.raises(Conflict):
            await act


async def test_the_last_platform_admin_stays(ctx: Context, cast: Cast) -> None:
    with pytest.raises(Conflict):
        await deactivate_user(ctx, SYSTEM, cast.root.email)
    with pytest.raises(Conflict):
        await set_platform_admin(ctx, SYSTEM, cast.root.email, admin=False)
    await set_platform_admin(ctx, SYSTEM, cast.admin.email, admin=True)
    assert not (await deactivate_user(ctx, SYSTEM, cast.root.email)).active


async def test_two_admins_who_remove_each_other_at_once_leave_one(
    ctx: Context, cast: Cast, database: Database
) -> None:
    second = await make_person(ctx, "second", platform_admin=True)
    one = await authenticate(ctx, bearer=cast.root.token)
    two = await authenticate(ctx, bearer=second.token)
    results = await asyncio.gather(
        deactivate_user(ctx, one, second.email),
        deactivate_user(ctx, two, cast.root.email),
        return_exceptions=True,
    )
    assert len([r for r in results if isinstance(r, Conflict)]) == 1
    async with database.reading() as connection:
        left = await connection.fetchval(
            "SELECT count(*) FROM users WHERE active AND platform_admin"
        )
    assert left == 1


async def test_doing_it_again_changes_nothing_and_is_not_written_again(
    ctx: Context, cast: Cast, database: Database
) -> None:
    for _ in range(2):
        await deactivate_user(ctx, SYSTEM, cast.member.email)
    for _ in range(2):
        await activate_user(ctx, SYSTEM, cast.member.email)
    async with database.reading() as connection:
        rows = await connection.fetch(
            "SELECT action FROM audit WHERE object = $1 ORDER BY seq", f"user:{cast.member.email}"
        )
    assert [row["action"] for row in rows] == ["user.deactivated", "user.activated"]


async def test_an_unknown_account_is_not_found(ctx: Context) -> None:
    for act in (read_user, reset_password, deactivate_user, activate_user):
        with pytest.raises(NotFound):
            await act(ctx, SYSTEM, "nobody@example.org")


@pytest.mark.parametrize("who", ["member", "admin", "stranger", "reader"])
async def test_only_platform_admins_manage_people(ctx: Context, cast: Cast, who: str) -> None:
    actor = await authenticate(ctx, bearer=getattr(cast, who).token)
    for act in (
        create_user(ctx, actor, email="x@example.org"),
        list_users(ctx, actor),
        read_user(ctx, actor, cast.root.email),
        reset_password(ctx, actor, cast.root.email),
        deactivate_user(ctx, actor, cast.root.email),
        activate_user(ctx, actor, cast.root.email),
        set_platform_admin(ctx, actor, cast.member.email, admin=True),
    ):
        with pytest.raises(NotAllowed):
            await act
