"""What platform admins do with people."""

from __future__ import annotations

from dataclasses import dataclass

from verderer.core.access import Action, require
from verderer.core.credentials import make_one_time_password
from verderer.core.errors import Conflict
from verderer.core.labels import check_title
from verderer.core.model.actor import Actor, ActorKind
from verderer.core.model.people import User
from verderer.core.passwords import canonical_email
from verderer.store.database import Tx
from verderer.store.tables import audit, people
from verderer.store.views import people as views
from verderer.usecases.context import Context
from verderer.usecases.people.passwords import hash_password


@dataclass(frozen=True, slots=True)
class NewUser:
    """Somebody, and the one-time password that is shown now and never again."""

    user: User
    password: str


async def create_user(
    ctx: Context, actor: Actor, *, email: str, name: str = "", platform_admin: bool = False
) -> NewUser:
    """Make an account with a one-time password.

    Raises:
        NotAllowed: the actor is not a platform admin.
        Invalid: the e-mail address or the name is not acceptable.
        Conflict: there is an account of this e-mail address.
    """
    require(actor, Action.USER_MANAGE)
    address = canonical_email(email)
    title = check_title(name, field="name")
    password = make_one_time_password(ctx.secret())
    hashed = await hash_password(password)
    async with ctx.db.transaction() as tx:
        user = await people.add_user(
            tx, email=address, name=title, password_hash=hashed, platform_admin=platform_admin
        )
        await _note(tx, actor, user, "user.created", platform_admin=platform_admin)
    return NewUser(user, password)


async def list_users(ctx: Context, actor: Actor, *, after: str = "", limit: int = 50) -> list[User]:
    """Accounts by e-mail address, beginning behind the address `after`."""
    require(actor, Action.USER_MANAGE)
    async with ctx.db.reading() as connection:
        return await views.visible(connection, actor.scope, after=after, limit=limit)


async def read_user(ctx: Context, actor: Actor, email: str) -> User:
    """Raise `NotFound` when there is none of this e-mail address."""
    require(actor, Action.USER_MANAGE)
    async with ctx.db.reading() as connection:
        return await people.user_by_email(connection, email.lower())


async def reset_password(ctx: Context, actor: Actor, email: str) -> NewUser:
    """Give somebody a new one-time password and end their sessions at once.

    Tokens of programs keep working; deactivate the account when those must stop.
    """
    require(actor, Action.USER_MANAGE)
    password = make_one_time_password(ctx.secret())
    hashed = await hash_password(password)
    async with ctx.db.transaction() as tx:
        user = await people.user_by_email(tx, email.lower())
        await people.set_password(tx, user.id, hashed, must_change=True)
        ended = await people.end_sessions(tx, user.id)
        await _note(tx, actor, user, "password.reset", sessions_ended=ended)
        user = await people.user_by_id(tx, user.id)
    ctx.wakeups.wake(["auth"])
    return NewUser(user, password)


async def deactivate_user(ctx: Context, actor: Actor, email: str) -> User:
    """Lock somebody out at once: their sessions end and their tokens are revoked for good.

    Does nothing when the account is deactivated already.

    Raises:
        NotFound: there is no such account.
        Conflict: it is the actor's own, or the last platform admin's.
    """
    require(actor, Action.USER_MANAGE)
    async with ctx.db.transaction() as tx:
        user = await _admin_leaves(tx, actor, email)
        if await people.set_active(tx, user.id, False):
            sessions = await people.end_sessions(tx, user.id)
            tokens = await people.revoke_tokens(tx, user.id)
            await _note(
                tx,
                actor,
                user,
                "user.deactivated",
                sessions_ended=sessions,
                tokens_revoked=tokens,
            )
        user = await people.user_by_id(tx, user.id)
    ctx.wakeups.wake(["auth"])
    return user


async def activate_user(ctx: Context, actor: Actor, email: str) -> User:
    """Let somebody log in again; what was revoked stays revoked."""
    require(actor, Action.USER_MANAGE)
    async with ctx.db.transaction() as tx:
        user = await people.user_by_email(tx, email.lower())
        if await people.set_active(tx, user.id, True):
            await _note(tx, actor, user, "user.activated")
        user = await people.user_by_id(tx, user.id)
    ctx.wakeups.wake(["auth"])
    return user


async def set_platform_admin(ctx: Context, actor: Actor, email: str, *, admin: bool) -> User:
    """Make somebody a platform admin, or no longer one.

    Raises:
        Conflict: the actor would lose the right, or nobody would be left with it.
    """
    require(actor, Action.USER_MANAGE)
    async with ctx.db.transaction() as tx:
        if admin:
            user = await people.user_by_email(tx, email.lower())
        else:
            user = await _admin_leaves(tx, actor, email)
        if await people.set_platform_admin(tx, user.id, admin):
            await _note(tx, actor, user, "user.admin_set", platform_admin=admin)
        user = await people.user_by_id(tx, user.id)
    ctx.wakeups.wake(["auth"])
    return user


async def _admin_leaves(tx: Tx, actor: Actor, email: str) -> User:
    await people.lock_admins(tx)
    user = await people.user_by_email(tx, email.lower())
    if actor.kind is ActorKind.USER and user.id == actor.id:
        raise Conflict("you cannot lock yourself out", hint="Ask another platform admin.")
    if user.platform_admin and user.active and not await people.other_admins(tx, user.id):
        raise Conflict("this is the last platform admin", hint="Make another one first.")
    return user


async def _note(tx: Tx, actor: Actor, user: User, action: str, **detail: object) -> None:
    entry = audit.Entry(action=action, object=f"user:{user.email}", detail=detail or None)
    await audit.add(tx, actor, [entry])
