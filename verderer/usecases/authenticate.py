"""Find out who asks: the one place where a credential becomes an actor."""

from __future__ import annotations

from dataclasses import replace

from verderer.core.credentials import StepClaim, TokenKind, hash_token, kind_of, read_step_token
from verderer.core.errors import NotAuthenticated
from verderer.core.model.actor import Actor, ActorKind, Role
from verderer.store.database import Tx
from verderer.store.tables import credentials
from verderer.store.tables.credentials import Holder
from verderer.usecases.context import Context

_BEARERS = frozenset({TokenKind.USER, TokenKind.AGENT, TokenKind.STEP})


async def authenticate(
    ctx: Context, *, bearer: str = "", session: str = "", origin: str = ""
) -> Actor:
    """The actor that a credential belongs to.

    `bearer` is a program's token, `session` a browser's: one kind is never taken for the other,
    and a door passes only what it accepts. Changes of people are felt at once, and within half
    a second when the news of them is lost.

    Raises:
        NotAuthenticated: no credential, two, or one that is unknown, expired, revoked, of a
            deactivated user or of an attempt that is over.
    """
    token = bearer or session
    kind = kind_of(token)
    allowed = kind in _BEARERS if bearer else kind is TokenKind.SESSION
    if kind is None or not allowed or (bearer and session):
        raise refused(given=bool(token))
    key = hash_token(token)
    actor = ctx.known.get(key, origin)
    if actor is None:
        generation = ctx.known.generation
        actor = replace(await _look_up(ctx, kind, token, key), origin=origin)
        ctx.known.put(key, actor, generation=generation)
    return actor


def refused(*, given: bool) -> NotAuthenticated:
    """The same answer whatever was wrong with the credential."""
    if given:
        return NotAuthenticated(
            "the credential is unknown, expired or revoked", hint="Log in again."
        )
    return NotAuthenticated("log in first", hint="Send a token as `Authorization: Bearer …`.")


async def _look_up(ctx: Context, kind: TokenKind, token: str, key: bytes) -> Actor:
    if kind is TokenKind.STEP:
        return await _step(ctx, token)
    async with ctx.db.reading() as connection:
        if kind is TokenKind.AGENT:
            return await _agent(connection, key)
        if kind is TokenKind.SESSION:
            holder = await credentials.by_session(connection, key)
        else:
            holder = await credentials.by_token(connection, key)
        if holder is None:
            raise refused(given=True)
        if holder.stale:
            note = credentials.session_seen if kind is TokenKind.SESSION else credentials.token_used
            await note(connection, key)
    return _user(holder, browser=kind is TokenKind.SESSION)


def _user(holder: Holder, *, browser: bool) -> Actor:
    return Actor(
        kind=ActorKind.USER,
        id=holder.id,
        name=holder.email,
        platform_admin=holder.platform_admin,
        roles=holder.roles,
        read_only=holder.read_only,
        must_change=browser and holder.must_change,
        language=holder.language,
    )


async def _agent(connection: Tx, key: bytes) -> Actor:
    """A disabled cluster's agent is known too: it must report about what still runs."""
    found = await credentials.by_agent(connection, key)
    if found is None:
        raise refused(given=True)
    cluster, name = found
    return Actor(kind=ActorKind.AGENT, id=cluster, name=name)


async def _step(ctx: Context, token: str) -> Actor:
    claim = read_step_token(ctx.key, token, now_unix_s=ctx.clock().timestamp())
    if claim is None:
        raise refused(given=True)
    async with ctx.db.reading() as connection:
        if not await credentials.attempt_lives(connection, claim.attempt, project=claim.project):
            raise refused(given=True)
    return _of_step(claim)


def _of_step(claim: StepClaim) -> Actor:
    return Actor(
        kind=ActorKind.STEP,
        id=claim.attempt.run,
        name=str(claim.attempt),
        roles={claim.project: Role.MEMBER},
    )
