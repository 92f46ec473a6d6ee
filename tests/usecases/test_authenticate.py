"""Every kind of credential: who it makes of a caller, and how soon it stops."""

from __future__ import annotations

import asyncio

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.rig.people import SYSTEM, Cast, make_context, make_person
from tests.usecases.world import OK, World
from verderer.core.access import Action, require
from verderer.core.credentials import hash_token, kind_of
from verderer.core.errors import Conflict, NotAuthenticated, NotFound
from verderer.core.model.actor import ActorKind, Role
from verderer.core.model.attempt import AttemptKey
from verderer.store.database import Database
from verderer.usecases.authenticate import authenticate
from verderer.usecases.clusters import create_cluster_credential
from verderer.usecases.context import Context
from verderer.usecases.enrolment.expel import revoke_agent
from verderer.usecases.known_actors import KnownActors
from verderer.usecases.people.account import end_session, end_sessions, list_sessions
from verderer.usecases.people.projects import put_member, remove_member
from verderer.usecases.people.tokens import create_token, list_tokens, revoke_token
from verderer.usecases.people.users import activate_user, deactivate_user, reset_password
from verderer.usecases.step_tokens import make_step_token

ONE = """
metadata: {name: one}
steps:
  - {name: only, command: ["true"], resources: {requests: {cpu: 500m}}}
"""


async def known(ctx: Context, *, bearer: str = "", session: str = "") -> bool:
    try:
        await authenticate(ctx, bearer=bearer, session=session)
    except NotAuthenticated:
        return False
    return True


async def test_each_kind_of_credential_makes_its_kind_of_actor(ctx: Context, cast: Cast) -> None:
    person = await authenticate(ctx, bearer=cast.reader.token, origin="192.0.2.1")
    assert (person.kind, person.name) == (ActorKind.USER, cast.reader.email)
    assert list(person.roles.values()) == [Role.MEMBER]
    assert person.read_only
    assert person.origin == "192.0.2.1"
    browser = await authenticate(ctx, session=cast.reader.session)
    assert not browser.read_only
    agent = await authenticate(ctx, bearer=cast.agent)
    assert (agent.kind, agent.name) == (ActorKind.AGENT, "local")


async def test_a_credential_opens_only_its_own_door(ctx: Context, cast: Cast) -> None:
    assert not await known(ctx, bearer=cast.member.session)
    assert not await known(ctx, session=cast.member.token)
    assert not await known(ctx, session=cast.agent)
    assert not await known(ctx, bearer=cast.member.token, session=cast.member.session)
    assert not await known(ctx)


@pytest.fixture(scope="module")
def pool() -> list[str]:
    return ["", " ", "nothing", "vrd_u_", "vrd_s_", "vrd_t_", "vrd_a_", "Bearer x", "\x00", "é"]


@given(text=st.text(max_size=200), start=st.sampled_from(["", "vrd_s_", "vrd_u_", "vrd_t_"]))
def test_no_text_breaks_the_format_check(text: str, start: str) -> None:
    if kind_of(start + text):
        hash_token(start + text)


async def test_made_up_credentials_are_refused(ctx: Context, pool: list[str]) -> None:
    for text in pool:
        assert not await known(ctx, bearer=text)
        assert not await known(ctx, session=text)
    assert not await known(ctx, bearer="vrd_u_" + "a" * 43)
    assert not await known(ctx, session="vrd_s_" + "a" * 43)
    assert not await known(ctx, bearer="vrd_a_" + "a" * 43)
    assert not await known(ctx, bearer="vrd_t_" + "a" * 78)


async def test_only_hashes_are_kept(ctx: Context, cast: Cast, database: Database) -> None:
    async with database.reading() as connection:
        for table, column in (
            ("sessions", "token_hash"),
            ("api_tokens", "token_hash"),
            ("clusters", "credential_hash"),
        ):
            for row in await connection.fetch(f"SELECT {table}::text AS all FROM {table}"):
                for secret in (cast.member.token, cast.member.session, cast.agent):
                    assert secret not in row["all"]
            assert (
                await connection.fetchval(f"SELECT count(*) FROM {table} WHERE {column} IS NULL")
                == 0
            )


async def test_revoking_a_token_is_felt_at_once_although_it_was_used_a_moment_ago(
    ctx: Context, cast: Cast
) -> None:
    actor = await authenticate(ctx, bearer=cast.member.token)
    (info,) = await list_tokens(ctx, actor)
    await revoke_token(ctx, actor, info.id)
    assert not await known(ctx, bearer=cast.member.token)
    assert await list_tokens(ctx, actor) == []
    with pytest.raises(NotFound):
        await revoke_token(ctx, actor, info.id)


async def test_somebody_elses_token_cannot_be_revoked(ctx: Context, cast: Cast) -> None:
    actor = await authenticate(ctx, bearer=cast.member.token)
    (info,) = await list_tokens(ctx, actor)
    stranger = await authenticate(ctx, bearer=cast.stranger.token)
    with pytest.raises(NotFound):
        await revoke_token(ctx, stranger, info.id)
    assert await known(ctx, bearer=cast.member.token)


async def test_deactivating_somebody_ends_sessions_and_tokens_at_once_and_for_good(
    ctx: Context, cast: Cast
) -> None:
    assert await known(ctx, bearer=cast.member.token)
    assert await known(ctx, session=cast.member.session)
    await deactivate_user(ctx, SYSTEM, cast.member.email)
    assert not await known(ctx, bearer=cast.member.token)
    assert not await known(ctx, session=cast.member.session)
    await activate_user(ctx, SYSTEM, cast.member.email)
    assert not await known(ctx, bearer=cast.member.token)
    assert not await known(ctx, session=cast.member.session)


async def test_resetting_a_password_ends_sessions_and_keeps_tokens(
    ctx: Context, cast: Cast
) -> None:
    await reset_password(ctx, SYSTEM, cast.member.email)
    assert not await known(ctx, session=cast.member.session)
    assert await known(ctx, bearer=cast.member.token)
    assert not (await authenticate(ctx, bearer=cast.member.token)).must_change


async def test_losing_a_role_is_felt_at_once(ctx: Context, cast: Cast) -> None:
    before = await authenticate(ctx, bearer=cast.member.token)
    (project,) = before.roles
    await put_member(ctx, SYSTEM, "ours", email=cast.member.email, role=Role.ADMIN)
    after = await authenticate(ctx, bearer=cast.member.token)
    assert after.roles == {project: Role.ADMIN}
    await remove_member(ctx, SYSTEM, "ours", email=cast.member.email)
    with pytest.raises(NotFound):
        require(await authenticate(ctx, bearer=cast.member.token), Action.RUN_READ, project=project)


async def test_another_server_feels_it_within_a_second(
    cast: Cast, ctx: Context, database: Database
) -> None:
    other = make_context(database)
    await other.wakeups.start()
    await ctx.wakeups.start()
    try:
        assert await known(other, bearer=cast.member.token)
        await deactivate_user(ctx, SYSTEM, cast.member.email)
        async with asyncio.timeout(1.0):
            while await known(other, bearer=cast.member.token):
                await asyncio.sleep(0.005)
    finally:
        await other.wakeups.stop()
        await ctx.wakeups.stop()


async def test_an_expired_token_and_an_expired_session_are_refused(
    ctx: Context, cast: Cast, database: Database
) -> None:
    async with database.transaction() as tx:
        await tx.execute("UPDATE api_tokens SET expires_at = now() - interval '1 second'")
        await tx.execute("UPDATE sessions SET expires_at = now() - interval '1 second'")
    assert not await known(ctx, bearer=cast.member.token)
    assert not await known(ctx, session=cast.member.session)


async def test_a_session_that_is_used_lives_on_for_ninety_days_at_most(
    ctx: Context, cast: Cast, database: Database
) -> None:
    async with database.transaction() as tx:
        await tx.execute(
            "UPDATE sessions SET created_at = now() - interval '80 days',"
            " seen_at = now() - interval '13 days', expires_at = now() + interval '1 day'"
        )
    assert await known(ctx, session=cast.member.session)
    async with database.reading() as connection:
        left, seen = await connection.fetchrow(
            "SELECT expires_at - now(), now() - seen_at < interval '1 minute' FROM sessions"
            " WHERE expires_at > now() + interval '2 days'"
        )
    assert 9 <= left.days <= 10
    assert seen


async def test_the_last_use_of_a_token_is_written_down_once_a_minute(
    ctx: Context, cast: Cast, database: Database
) -> None:
    actor = await authenticate(ctx, bearer=cast.member.token)
    (first,) = await list_tokens(ctx, actor)
    assert first.used_at is not None
    ctx.known.heard("auth")
    await authenticate(ctx, bearer=cast.member.token)
    (second,) = await list_tokens(ctx, actor)
    assert second.used_at == first.used_at


async def test_sessions_are_listed_and_ended_one_by_one(ctx: Context, cast: Cast) -> None:
    actor = await authenticate(ctx, session=cast.member.session)
    (info,) = await list_sessions(ctx, actor)
    assert info.id not in cast.member.session
    stranger = await authenticate(ctx, session=cast.stranger.session)
    with pytest.raises(NotFound):
        await end_session(ctx, stranger, info.id)
    await end_session(ctx, actor, info.id)
    assert not await known(ctx, session=cast.member.session)


async def test_all_sessions_but_the_present_one_end(ctx: Context, cast: Cast) -> None:
    actor = await authenticate(ctx, session=cast.member.session)
    assert await end_sessions(ctx, actor, but=cast.member.session) == 0
    assert await known(ctx, session=cast.member.session)
    assert await end_sessions(ctx, actor) == 1
    assert not await known(ctx, session=cast.member.session)


async def test_a_new_agent_credential_replaces_the_old_one_at_once(
    ctx: Context, cast: Cast
) -> None:
    assert await known(ctx, bearer=cast.agent)
    fresh = await create_cluster_credential(ctx, SYSTEM, "local", "local")
    assert not await known(ctx, bearer=cast.agent)
    assert await known(ctx, bearer=fresh)
    await revoke_agent(ctx, SYSTEM, "local")
    assert not await known(ctx, bearer=fresh)
    with pytest.raises(NotFound):
        await revoke_agent(ctx, SYSTEM, "local")


async def test_a_cluster_does_not_change_its_kind(ctx: Context, cast: Cast) -> None:
    with pytest.raises(Conflict):
        await create_cluster_credential(ctx, SYSTEM, "local", "slurm")
    assert await known(ctx, bearer=cast.agent)


async def test_a_step_token_works_while_its_attempt_lives(database: Database) -> None:
    world = await World.make(database)
    run = await world.submit(ONE)
    attempt = AttemptKey(run.run, 0, 1)
    async with database.reading() as connection:
        project = await connection.fetchval("SELECT id FROM projects WHERE name = 'demo'")
    token = make_step_token(world.ctx, attempt, project=project)
    assert not await known(world.ctx, bearer=token), "not placed yet"
    await world.place()
    actor = await authenticate(world.ctx, bearer=token)
    assert (actor.kind, actor.id, actor.name) == (ActorKind.STEP, run.run, str(attempt))
    assert dict(actor.roles) == {project: Role.MEMBER}
    elsewhere = make_step_token(world.ctx, attempt, project=project + 1)
    assert not await known(world.ctx, bearer=elsewhere)
    second = make_step_token(world.ctx, AttemptKey(run.run, 0, 2), project=project)
    assert not await known(world.ctx, bearer=second)
    other_instance = make_context(database, key=b"o" * 32)
    assert not await known(other_instance, bearer=token)
    await world.report(attempt, OK)
    world.ctx.known.heard("auth")
    assert not await known(world.ctx, bearer=token)


async def test_what_was_looked_up_before_a_change_is_not_remembered_after_it() -> None:
    memory = KnownActors(now=lambda: 0.0)
    generation = memory.generation
    memory.heard("auth")
    memory.put(b"k", SYSTEM, generation=generation)
    assert memory.get(b"k", "") is None
    memory.put(b"k", SYSTEM, generation=memory.generation)
    assert memory.get(b"k", "") is SYSTEM
    memory.heard("queue")
    assert memory.get(b"k", "") is SYSTEM


def test_the_memory_lasts_half_a_second_and_stays_small() -> None:
    now = 0.0
    memory = KnownActors(now=lambda: now)
    memory.put(b"k", SYSTEM, generation=0)
    now = 0.49
    assert memory.get(b"k", "") is SYSTEM
    now = 0.51
    assert memory.get(b"k", "") is None
    for n in range(25_000):
        memory.put(str(n).encode(), SYSTEM, generation=0)
    assert len(memory._known) <= 10_000


async def test_a_hot_credential_is_not_asked_for_every_time(
    ctx: Context, cast: Cast, database: Database
) -> None:
    await authenticate(ctx, bearer=cast.member.token)
    await database.close()
    assert await known(ctx, bearer=cast.member.token)


async def test_a_token_for_a_program_is_as_wide_as_asked(ctx: Context) -> None:
    person = await make_person(ctx, "ana")
    actor = await authenticate(ctx, session=person.session)
    made = await create_token(ctx, actor, name="ci", days=1, read_only=True)
    assert (await authenticate(ctx, bearer=made.token)).read_only
    assert made.token.startswith(made.info.hint)
