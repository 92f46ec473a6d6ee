"""Projects: who sees them, who says who is in them."""

from __future__ import annotations

import asyncio

import pytest

from tests.rig.people import SYSTEM, Cast
from verderer.core.errors import Conflict, Invalid, NotAllowed, NotFound
from verderer.core.model.actor import Actor, Role
from verderer.store.database import Database
from verderer.usecases.authenticate import authenticate
from verderer.usecases.context import Context
from verderer.usecases.people.projects import (
    create_project,
    list_members,
    list_projects,
    put_member,
    read_project,
    remove_member,
)


async def actor_of(ctx: Context, cast: Cast, who: str) -> Actor:
    return await authenticate(ctx, bearer=getattr(cast, who).token)


@pytest.mark.parametrize(
    ("who", "seen"),
    [
        pytest.param("member", ["ours"], id="a member sees the own project"),
        pytest.param("stranger", ["theirs"], id="a stranger sees another"),
        pytest.param("root", ["ours", "theirs"], id="a platform admin sees all"),
    ],
)
async def test_a_list_holds_what_one_may_see(
    ctx: Context, cast: Cast, who: str, seen: list[str]
) -> None:
    actor = await actor_of(ctx, cast, who)
    assert [p.name for p in await list_projects(ctx, actor)] == seen
    for name in ("ours", "theirs"):
        if name in seen:
            assert (await read_project(ctx, actor, name)).name == name
        else:
            with pytest.raises(NotFound):
                await read_project(ctx, actor, name)
            with pytest.raises(NotFound):
                await list_members(ctx, actor, name)


@pytest.mark.parametrize("name", ["our", "ours-", "OURS", "ours%", "ours/", "ours ", "оurs", ""])
async def test_a_name_is_never_matched_in_part(ctx: Context, cast: Cast, name: str) -> None:
    with pytest.raises(NotFound):
        await read_project(ctx, await actor_of(ctx, cast, "root"), name)


async def test_who_makes_a_project_is_its_admin(ctx: Context, cast: Cast) -> None:
    root = await actor_of(ctx, cast, "root")
    await create_project(ctx, root, name="new", title="New one")
    (member,) = await list_members(ctx, root, "new")
    assert (member.email, member.role) == (cast.root.email, Role.ADMIN)
    with pytest.raises(Conflict):
        await create_project(ctx, root, name="new")


@pytest.mark.parametrize("name", ["", "A", "a b", "a_b", "-a", "a" * 64, "a\x00"])
async def test_a_project_needs_a_name(ctx: Context, name: str) -> None:
    with pytest.raises(Invalid):
        await create_project(ctx, SYSTEM, name=name)


@pytest.mark.parametrize("who", ["member", "reader", "stranger"])
async def test_only_its_admins_say_who_is_in_it(ctx: Context, cast: Cast, who: str) -> None:
    actor = await actor_of(ctx, cast, who)
    error = NotFound if who == "stranger" else NotAllowed
    with pytest.raises(error):
        await put_member(ctx, actor, "ours", email=cast.stranger.email, role=Role.MEMBER)
    with pytest.raises(error):
        await put_member(ctx, actor, "ours", email=cast.member.email, role=Role.ADMIN)
    with pytest.raises(error):
        await remove_member(ctx, actor, "ours", email=cast.admin.email)


async def test_an_admin_takes_people_in_and_out(ctx: Context, cast: Cast) -> None:
    admin = await actor_of(ctx, cast, "admin")
    await put_member(ctx, admin, "ours", email=cast.stranger.email.upper(), role=Role.MEMBER)
    assert {p.name for p in await list_projects(ctx, await actor_of(ctx, cast, "stranger"))} == {
        "ours",
        "theirs",
    }
    await remove_member(ctx, admin, "ours", email=cast.stranger.email)
    with pytest.raises(NotFound):
        await remove_member(ctx, admin, "ours", email=cast.stranger.email)
    with pytest.raises(NotFound):
        await put_member(ctx, admin, "ours", email="nobody@example.org", role=Role.MEMBER)


async def test_the_last_admin_stays(ctx: Context, cast: Cast) -> None:
    admin = await actor_of(ctx, cast, "admin")
    with pytest.raises(Conflict):
        await put_member(ctx, admin, "ours", email=cast.admin.email, role=Role.MEMBER)
    with pytest.raises(Conflict):
        await remove_member(ctx, admin, "ours", email=cast.admin.email)


async def test_two_admins_who_leave_at_once_leave_one(
    ctx: Context, cast: Cast, database: Database
) -> None:
    await put_member(ctx, SYSTEM, "ours", email=cast.member.email, role=Role.ADMIN)
    results = await asyncio.gather(
        *(remove_member(ctx, SYSTEM, "ours", email=p.email) for p in (cast.member, cast.admin)),
        return_exceptions=True,
    )
    assert len([r for r in results if isinstance(r, Conflict)]) == 1


async def test_a_project_that_has_no_admin_yet_takes_a_member(ctx: Context, cast: Cast) -> None:
    await create_project(ctx, SYSTEM, name="empty")
    await put_member(ctx, SYSTEM, "empty", email=cast.member.email, role=Role.MEMBER)


async def test_a_role_that_is_there_already_is_not_written_again(
    ctx: Context, cast: Cast, database: Database
) -> None:
    async with database.reading() as connection:
        count = "SELECT count(*) FROM audit WHERE action = 'project.member_set'"
        before = await connection.fetchval(count)
        await put_member(ctx, SYSTEM, "ours", email=cast.member.email, role=Role.MEMBER)
        assert await connection.fetchval(count) == before


async def test_members_are_paged_by_address(ctx: Context, cast: Cast) -> None:
    admin = await actor_of(ctx, cast, "admin")
    first = await list_members(ctx, admin, "ours", limit=2)
    rest = await list_members(ctx, admin, "ours", after=first[-1].email)
    assert [m.name for m in first + rest] == ["admin", "member", "reader"]
