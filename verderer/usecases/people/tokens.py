"""Tokens for programs that act for a person."""

from __future__ import annotations

from datetime import timedelta

from verderer.core.access import Action, require
from verderer.core.credentials import TokenKind, hash_token, hint_of, make_token
from verderer.core.errors import Invalid, NotAllowed, Problem
from verderer.core.labels import check_title
from verderer.core.model.actor import Actor, ActorKind
from verderer.core.model.people import ApiToken
from verderer.store.tables import audit, people
from verderer.usecases.context import Context
from verderer.usecases.people.login import NewToken

MOST_DAYS = 366
USUAL_DAYS = 90


async def create_token(
    ctx: Context, actor: Actor, *, name: str, days: int = USUAL_DAYS, read_only: bool = False
) -> NewToken:
    """Make a token that acts for the actor, for `days` days; it is shown this once.

    Raises:
        Invalid: the name is empty or too long, or `days` is not from 1 to 366.
        NotAllowed: the actor's own credential may not change anything.
    """
    _person(actor, Action.SELF_CHANGE)
    label = check_title(name, field="name", least=1, most=100)
    if not 1 <= days <= MOST_DAYS:
        problem = Problem(field="days", message=f"must be from 1 to {MOST_DAYS}")
        raise Invalid("days is not acceptable", problems=[problem])
    token = make_token(TokenKind.USER, ctx.secret())
    async with ctx.db.transaction() as tx:
        info = await people.add_token(
            tx,
            actor.id,
            hash_token(token),
            name=label,
            hint=hint_of(token),
            read_only=read_only,
            life=timedelta(days=days),
        )
        detail = {"name": label, "days": days, "read_only": read_only}
        entry = audit.Entry(action="token.created", object=f"token:{info.id}", detail=detail)
        await audit.add(tx, actor, [entry])
    return NewToken(token, info)


async def list_tokens(
    ctx: Context, actor: Actor, *, before: int | None = None, limit: int = 50
) -> list[ApiToken]:
    """The actor's own that were not revoked, the newest first, with ids below `before`."""
    _person(actor, Action.SELF_READ)
    async with ctx.db.reading() as connection:
        return await people.tokens_of(connection, actor.id, before=before, limit=limit)


async def revoke_token(ctx: Context, actor: Actor, token: int) -> None:
    """End one of them by its id, at once.

    Raises:
        NotFound: the actor has no such token.
    """
    _person(actor, Action.SELF_CHANGE)
    async with ctx.db.transaction() as tx:
        info = await people.revoke_token(tx, actor.id, token)
        detail = {"name": info.name}
        entry = audit.Entry(action="token.revoked", object=f"token:{info.id}", detail=detail)
        await audit.add(tx, actor, [entry])
    ctx.wakeups.wake(["auth"])


def _person(actor: Actor, action: Action) -> None:
    require(actor, action)
    if actor.kind is not ActorKind.USER:
        raise NotAllowed(f"a {actor.kind} credential has no account")
