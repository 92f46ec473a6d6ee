"""Logging in: who gets in, who is slowed down, and what is written about it."""

from __future__ import annotations

import asyncio
from datetime import timedelta

import pytest

from tests.rig.people import PASSWORD, SYSTEM, Cast, make_context
from verderer.core.errors import Invalid, NotAllowed, NotAuthenticated, TooMany
from verderer.store.database import Database
from verderer.usecases.authenticate import authenticate
from verderer.usecases.context import Context
from verderer.usecases.people import passwords
from verderer.usecases.people.account import change_password
from verderer.usecases.people.login import login, login_program, logout
from verderer.usecases.people.throttle import TRIES
from verderer.usecases.people.users import create_user, deactivate_user

HOME, ELSEWHERE = "192.0.2.7", "198.51.100.9"


async def audit_of(database: Database, action: str) -> list[tuple[str, str, str]]:
    async with database.reading() as connection:
        rows = await connection.fetch(
            "SELECT actor, object, result FROM audit WHERE action = $1 ORDER BY seq", action
        )
    return [tuple(row) for row in rows]


async def refused(ctx: Context, email: str, *, origin: str, password: str = "wrong") -> str:
    try:
        await login(ctx, email=email, password=password, origin=origin)
    except (NotAuthenticated, TooMany) as e:
        return e.code
    return "in"


async def end_window(database: Database) -> None:
    async with database.transaction() as tx:
        await tx.execute("UPDATE login_attempts SET since = since - interval '6 minutes'")


async def test_the_right_password_opens_a_session_whatever_the_case_of_the_address(
    ctx: Context, cast: Cast, database: Database
) -> None:
    opened = await login(
        ctx, email=" Member@Example.ORG", password=PASSWORD, origin=HOME, user_agent="Firefox\n\x1b"
    )
    actor = await authenticate(ctx, session=opened.token, origin=HOME)
    assert actor.name == cast.member.email
    assert actor.origin == HOME
    assert await audit_of(database, "session.opened") == [("user:member@example.org", "", "ok")]
    async with database.reading() as connection:
        row = await connection.fetchrow("SELECT * FROM sessions WHERE origin = $1", HOME)
    assert row is not None
    assert row["agent"] == "Firefox"


@pytest.mark.parametrize(
    ("email", "password"),
    [
        pytest.param("member@example.org", "wrong", id="wrong password"),
        pytest.param("member@example.org", "", id="no password"),
        pytest.param("member@example.org", PASSWORD.upper(), id="other case"),
        pytest.param("member@example.org", PASSWORD + "\x00", id="more behind a NUL"),
        pytest.param("member@example.org", "x" * 100_000, id="100 kB of password"),
        pytest.param("member@example.org", "\ud800", id="half a character"),
        pytest.param("nobody@example.org", PASSWORD, id="unknown address"),
        pytest.param("not an address", PASSWORD, id="no address"),
        pytest.param("\ud800@x", PASSWORD, id="half a character as address"),
        pytest.param("member@example.org'--", PASSWORD, id="SQL"),
    ],
)
async def test_anything_else_is_answered_alike(
    ctx: Context, cast: Cast, email: str, password: str
) -> None:
    with pytest.raises(NotAuthenticated) as caught:
        await login(ctx, email=email, password=password, origin=HOME)
    assert caught.value.code == "wrong_password"
    assert caught.value.message == "e-mail address or password is wrong"


async def test_a_deactivated_account_is_like_an_unknown_one(ctx: Context, cast: Cast) -> None:
    await deactivate_user(ctx, SYSTEM, cast.member.email)
    assert await refused(ctx, cast.member.email, origin=HOME, password=PASSWORD) == "wrong_password"


async def test_ten_failures_lock_the_account_for_a_while_from_everywhere(
    ctx: Context, cast: Cast, database: Database
) -> None:
    for n in range(TRIES):
        code = await refused(ctx, cast.member.email, origin=f"192.0.2.{n}")
        assert code == "wrong_password"
    with pytest.raises(TooMany) as caught:
        await login(ctx, email=cast.member.email, password=PASSWORD, origin=ELSEWHERE)
    assert 0 < caught.value.retry_after_s <= 300
    assert await refused(ctx, cast.admin.email, origin=ELSEWHERE, password=PASSWORD) == "in"
    await end_window(database)
    assert await refused(ctx, cast.member.email, origin=ELSEWHERE, password=PASSWORD) == "in"


async def test_ten_failures_lock_the_origin_and_its_whole_ipv6_network(
    ctx: Context, cast: Cast
) -> None:
    for n in range(TRIES):
        await refused(ctx, f"guess{n}@example.org", origin=f"2001:db8:1:2::{n + 1}")
    assert (
        await refused(ctx, cast.member.email, origin="2001:db8:1:2:ffff::1", password=PASSWORD)
        == "too_many"
    )
    other = await refused(ctx, cast.member.email, origin="2001:db8:1:3::1", password=PASSWORD)
    assert other == "in"


async def test_a_second_server_counts_on(ctx: Context, cast: Cast, database: Database) -> None:
    other = make_context(database)
    for n in range(TRIES):
        await refused(ctx if n % 2 else other, cast.member.email, origin=HOME)
    for server in (ctx, other):
        code = await refused(server, cast.member.email, origin=HOME, password=PASSWORD)
        assert code == "too_many"


async def test_guessing_all_at_once_gives_ten_guesses(ctx: Context, cast: Cast) -> None:
    guesses = (refused(ctx, cast.member.email, origin=f"10.0.0.{n}") for n in range(25))
    codes = await asyncio.gather(*guesses)
    assert codes.count("wrong_password") == TRIES
    assert codes.count("too_many") == 15


async def test_success_does_not_count(ctx: Context, cast: Cast) -> None:
    for _ in range(TRIES + 3):
        assert await refused(ctx, cast.member.email, origin=HOME, password=PASSWORD) == "in"


async def test_the_audit_names_accounts_that_exist_and_never_what_was_typed(
    ctx: Context, cast: Cast, database: Database
) -> None:
    await refused(ctx, cast.member.email, origin=HOME)
    await refused(ctx, "hunter2-hunter2@", origin=HOME)
    assert await audit_of(database, "session.refused") == [
        ("system:login", "user:member@example.org", "refused"),
        ("system:login", "unknown account", "refused"),
    ]


async def test_being_locked_out_is_written_once(
    ctx: Context, cast: Cast, database: Database
) -> None:
    for _ in range(TRIES + 5):
        await refused(ctx, cast.member.email, origin=HOME)
    results = [result for _, _, result in await audit_of(database, "session.refused")]
    assert results == ["refused"] * TRIES + ["limited"]


async def test_logging_out_ends_the_session_at_once(ctx: Context, cast: Cast) -> None:
    await authenticate(ctx, session=cast.member.session)
    await logout(ctx, cast.member.session)
    with pytest.raises(NotAuthenticated):
        await authenticate(ctx, session=cast.member.session)
    await logout(ctx, cast.member.session)  # a second time harms nobody


async def test_a_program_gets_a_token_of_ninety_days(ctx: Context, cast: Cast) -> None:
    made = await login_program(
        ctx, email=cast.member.email, password=PASSWORD, machine="laptop", origin=HOME
    )
    assert made.info.name == "laptop"
    assert made.info.expires_at is not None
    assert made.info.expires_at - made.info.created_at == timedelta(days=90)
    assert (await authenticate(ctx, bearer=made.token)).name == cast.member.email


async def test_a_one_time_password_opens_a_browser_only(ctx: Context) -> None:
    made = await create_user(ctx, SYSTEM, email="new@example.org")
    with pytest.raises(NotAllowed) as caught:
        await login_program(ctx, email=made.user.email, password=made.password, machine="laptop")
    assert caught.value.code == "must_change_password"
    opened = await login(ctx, email=made.user.email, password=made.password)
    assert opened.user.must_change


async def test_changing_the_password_ends_the_other_sessions_and_frees_this_one(
    ctx: Context,
) -> None:
    made = await create_user(ctx, SYSTEM, email="new@example.org")
    mine, other = [
        (await login(ctx, email=made.user.email, password=made.password)).token for _ in range(2)
    ]
    actor = await authenticate(ctx, session=mine)
    await change_password(ctx, actor, old=made.password, new=PASSWORD, session=mine)
    assert not (await authenticate(ctx, session=mine)).must_change
    with pytest.raises(NotAuthenticated):
        await authenticate(ctx, session=other)
    assert await refused(ctx, made.user.email, origin="", password=made.password) != "in"
    assert await refused(ctx, made.user.email, origin="", password=PASSWORD) == "in"


@pytest.mark.parametrize(
    ("old", "new", "error", "code"),
    [
        pytest.param("wrong", "a new one for me", NotAllowed, "wrong_password", id="wrong old"),
        pytest.param(PASSWORD, PASSWORD, Invalid, "weak_password", id="the same again"),
        pytest.param(PASSWORD, "short", Invalid, "weak_password", id="a weak one"),
    ],
)
async def test_a_password_is_not_changed(
    ctx: Context, cast: Cast, old: str, new: str, error: type[Exception], code: str
) -> None:
    actor = await authenticate(ctx, session=cast.member.session)
    with pytest.raises(error) as caught:
        await change_password(ctx, actor, old=old, new=new)
    assert getattr(caught.value, "code", "") == code
    assert await refused(ctx, cast.member.email, origin=HOME, password=PASSWORD) == "in"


async def test_the_present_password_cannot_be_guessed_through_changing_it(
    ctx: Context, cast: Cast
) -> None:
    actor = await authenticate(ctx, session=cast.member.session)
    for _ in range(TRIES):
        with pytest.raises(NotAllowed):
            await change_password(ctx, actor, old="wrong", new="a new one for me")
    with pytest.raises(TooMany):
        await change_password(ctx, actor, old=PASSWORD, new="a new one for me")


async def test_of_two_changes_at_once_one_wins(ctx: Context, cast: Cast) -> None:
    actor = await authenticate(ctx, session=cast.member.session)
    news = ["the first new password", "the other new password"]
    done = await asyncio.gather(
        *(change_password(ctx, actor, old=PASSWORD, new=new) for new in news),
        return_exceptions=True,
    )
    fits = [
        await refused(ctx, cast.member.email, origin=HOME, password=new) == "in" for new in news
    ]
    assert sum(fits) == 1
    assert [r is None for r in done] == fits


def test_an_unknown_account_costs_what_a_known_one_costs() -> None:
    assert not passwords.outdated(passwords._NOBODY), "other parameters take another time"
