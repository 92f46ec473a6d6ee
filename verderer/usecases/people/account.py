"""What people do with their own account: password, language, sessions."""

from __future__ import annotations

import re
from dataclasses import dataclass

from verderer.core.access import Action, require
from verderer.core.credentials import hash_token
from verderer.core.errors import Conflict, Invalid, NotAllowed, NotFound, Problem
from verderer.core.model.actor import Actor, ActorKind, Role
from verderer.core.model.people import Session, User
from verderer.core.passwords import canonical_password, check_password
from verderer.store.tables import audit, people
from verderer.store.views import projects
from verderer.usecases.context import Context
from verderer.usecases.people.passwords import hash_password, verify_password
from verderer.usecases.people.throttle import count_try, forgive_try

_LANGUAGE = re.compile(r"([a-z]{2,3}(-[A-Za-z0-9]{2,8}){0,3})?")


@dataclass(frozen=True, slots=True)
class Account:
    """Who is logged in, and what they are in which project, by its name."""

    user: User
    roles: dict[str, Role]


async def read_account(ctx: Context, actor: Actor) -> Account:
    """Raise `NotAllowed` for a credential that is not a person's."""
    _person(actor, Action.SELF_READ)
    async with ctx.db.reading() as connection:
        user = await people.user_by_id(connection, actor.id)
        mine = await projects.names(connection, actor.scope, sorted(actor.roles))
    return Account(user, {name: actor.roles[project] for project, name in mine.items()})


async def change_password(
    ctx: Context, actor: Actor, *, old: str, new: str, session: str = ""
) -> None:
    """Replace the password, and end every session but the one whose token is `session`.

    Tokens of programs keep working: they are revoked by themselves.

    Raises:
        NotAllowed: `old` is not the present password.
        Invalid: `new` is weak, or the old one again.
        TooMany: ten attempts failed within five minutes.
        Conflict: it was changed by somebody else at the same time.
    """
    _person(actor, Action.SELF_PASSWORD)
    check_password(new, email=actor.name, field="new")
    if canonical_password(new) == canonical_password(old):
        problem = Problem(field="new", message="the old password again")
        raise Invalid("choose another password", problems=[problem], code="weak_password")
    keys = await count_try(ctx, email=actor.name, origin=actor.origin)
    async with ctx.db.reading() as connection:
        kept = await people.password_hash(connection, actor.id)
    if kept is None or not await verify_password(old, kept):
        raise NotAllowed("the present password is another one", code="wrong_password")
    hashed = await hash_password(new)
    async with ctx.db.transaction() as tx:
        await forgive_try(tx, keys)
        if not await people.set_password(tx, actor.id, hashed, must_change=False, instead_of=kept):
            raise Conflict("the password was changed a moment ago")
        ended = await people.end_sessions(
            tx, actor.id, but=hash_token(session) if session else None
        )
        detail = {"sessions_ended": ended}
        await audit.add(tx, actor, [audit.Entry(action="password.changed", detail=detail)])
    ctx.wakeups.wake(["auth"])


async def set_language(ctx: Context, actor: Actor, language: str) -> None:
    """Remember the language of the console; empty follows the browser.

    Raises:
        Invalid: it is not a language tag.
    """
    _person(actor, Action.SELF_CHANGE)
    if not _LANGUAGE.fullmatch(language):
        problem = Problem(field="language", message="not a language tag", hint="zh-Hans")
        raise Invalid("language is not acceptable", problems=[problem])
    async with ctx.db.transaction() as tx:
        await people.set_language(tx, actor.id, language)
        detail = {"language": language}
        await audit.add(tx, actor, [audit.Entry(action="user.language_set", detail=detail)])
    ctx.wakeups.wake(["auth"])


async def list_sessions(ctx: Context, actor: Actor) -> list[Session]:
    """The actor's own browsers that are logged in."""
    _person(actor, Action.SELF_READ)
    async with ctx.db.reading() as connection:
        return await people.sessions_of(connection, actor.id)


async def end_session(ctx: Context, actor: Actor, session: str) -> None:
    """End one of them by its id, at once.

    Raises:
        NotFound: the actor has no such session.
    """
    _person(actor, Action.SELF_CHANGE)
    async with ctx.db.transaction() as tx:
        if not await people.end_session_by_id(tx, actor.id, session):
            raise NotFound("no such session")
        entry = audit.Entry(action="session.ended", object=f"session:{session}")
        await audit.add(tx, actor, [entry])
    ctx.wakeups.wake(["auth"])


async def end_sessions(ctx: Context, actor: Actor, *, but: str = "") -> int:
    """End all of them except the one whose token is `but`; return how many."""
    _person(actor, Action.SELF_CHANGE)
    async with ctx.db.transaction() as tx:
        ended = await people.end_sessions(tx, actor.id, but=hash_token(but) if but else None)
        detail = {"ended": ended}
        await audit.add(tx, actor, [audit.Entry(action="sessions.ended", detail=detail)])
    ctx.wakeups.wake(["auth"])
    return ended


def _person(actor: Actor, action: Action) -> None:
    require(actor, action)
    if actor.kind is not ActorKind.USER:
        raise NotAllowed(f"a {actor.kind} credential has no account")
