"""Log a person in with e-mail and password, and out again."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta

import structlog

from verderer.core.credentials import TokenKind, hash_token, hint_of, make_token
from verderer.core.errors import Invalid, NotAllowed, NotAuthenticated, NotFound
from verderer.core.labels import check_title
from verderer.core.model.actor import Actor, ActorKind
from verderer.core.model.people import ApiToken, User
from verderer.core.passwords import canonical_email
from verderer.store.tables import audit, people
from verderer.usecases.context import Context
from verderer.usecases.people.account import change_password
from verderer.usecases.people.passwords import hash_password, outdated, verify_password
from verderer.usecases.people.throttle import Throttled, count_try, forgive_try

PROGRAM_LIFE = timedelta(days=90)
_AGENT_LENGTH = 300

log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class SessionToken:
    """What the browser keeps, and who it stands for."""

    token: str
    user: User


@dataclass(frozen=True, slots=True)
class NewToken:
    """A program's token, which is shown now and never again."""

    token: str
    info: ApiToken


async def login(
    ctx: Context, *, email: str, password: str, origin: str = "", user_agent: str = ""
) -> SessionToken:
    """Open a session for a browser; it ends after `ctx.session_life` without use.

    Who has a one-time password (`user.must_change`) can only replace it.

    Raises:
        NotAuthenticated: no active account has this e-mail address and password.
        TooMany: ten attempts failed within five minutes, for this account or from this origin.
    """
    user = await _proven(ctx, email, password, origin)
    token = make_token(TokenKind.SESSION, ctx.secret())
    async with ctx.db.transaction() as tx:
        await people.forget_sessions(tx)
        opened = await people.add_session(
            tx,
            user.id,
            hash_token(token),
            life=ctx.session_life,
            origin=origin,
            agent=_one_line(user_agent),
        )
        if not opened:
            raise _wrong()
        await audit.add(tx, _as(user, origin), [audit.Entry(action="session.opened")])
    return SessionToken(token, user)


async def login_program(
    ctx: Context, *, email: str, password: str, machine: str, new: str = "", origin: str = ""
) -> NewToken:
    """Make a token of 90 days, named after the machine, for the command line.

    `new` replaces the password at the same time, as a one-time password wants.

    Raises:
        NotAuthenticated, TooMany: as `login`.
        NotAllowed: the password is a one-time password, and there is no `new` one.
        Invalid: `new` is weak, or the old one again.
    """
    name = check_title(machine, field="machine", least=1, most=100)
    user = await _proven(ctx, email, password, origin)
    if new:
        await change_password(ctx, _as(user, origin), old=password, new=new)
    elif user.must_change:
        raise NotAllowed(
            "the one-time password must be replaced first",
            hint="Send a password of your own as new_password.",
            code="must_change_password",
        )
    token = make_token(TokenKind.USER, ctx.secret())
    async with ctx.db.transaction() as tx:
        info = await people.add_token(
            tx,
            user.id,
            hash_token(token),
            name=name,
            hint=hint_of(token),
            read_only=False,
            life=PROGRAM_LIFE,
        )
        detail = {"name": name, "by": "password"}
        entry = audit.Entry(action="token.created", object=f"token:{info.id}", detail=detail)
        await audit.add(tx, _as(user, origin), [entry])
    return NewToken(token, info)


async def logout(ctx: Context, session: str, *, origin: str = "") -> None:
    """End the session with this token; nothing happens when there is none."""
    async with ctx.db.transaction() as tx:
        found = await people.end_session(tx, hash_token(session))
        if found is not None:
            user = await people.user_by_id(tx, found)
            await audit.add(tx, _as(user, origin), [audit.Entry(action="session.closed")])
    ctx.wakeups.wake(["auth"])


async def _proven(ctx: Context, email: str, password: str, origin: str) -> User:
    """The active user whose password this is. An attempt counts until it has succeeded."""
    user, kept = await _find(ctx, email)
    try:
        keys = await count_try(ctx, email=email, origin=origin)
    except Throttled as e:
        if e.first:
            await _note_failure(ctx, user, origin, "limited")
        raise
    fits = await verify_password(password, kept)
    if user is None or kept is None or not fits:
        await _note_failure(ctx, user, origin, "refused")
        raise _wrong()
    fresh = await hash_password(password) if outdated(kept) else None
    async with ctx.db.transaction() as tx:
        await forgive_try(tx, keys)
        if fresh:
            await people.set_password(
                tx, user.id, fresh, must_change=user.must_change, instead_of=kept
            )
    return user


async def _find(ctx: Context, email: str) -> tuple[User | None, str | None]:
    try:
        address = canonical_email(email)
        async with ctx.db.reading() as connection:
            user = await people.user_by_email(connection, address)
            return user, await people.password_hash(connection, user.id)
    except (Invalid, NotFound):
        return None, None


async def _note_failure(ctx: Context, user: User | None, origin: str, result: str) -> None:
    """Names the account only if there is one: people type passwords into the wrong field."""
    who = Actor(kind=ActorKind.SYSTEM, name="login", origin=origin)
    account = f"user:{user.email}" if user else "unknown account"
    entry = audit.Entry(action="session.refused", object=account, result=result)
    async with ctx.db.transaction() as tx:
        await audit.add(tx, who, [entry])
    log.info("login refused", account=account, origin=origin, result=result)


def _wrong() -> NotAuthenticated:
    return NotAuthenticated(
        "e-mail address or password is wrong", hint="An admin can reset it.", code="wrong_password"
    )


def _as(user: User, origin: str) -> Actor:
    return Actor(kind=ActorKind.USER, id=user.id, name=user.email, origin=origin)


def _one_line(text: str) -> str:
    return "".join(c for c in text[:_AGENT_LENGTH] if c.isprintable())
