"""Let an administrator in again when nobody can log in, from beside the database."""

from __future__ import annotations

from verderer.core.credentials import make_one_time_password
from verderer.core.errors import NotFound
from verderer.core.model.actor import Actor, ActorKind
from verderer.core.model.people import User
from verderer.core.passwords import canonical_email
from verderer.store.database import Tx
from verderer.store.tables import audit, people
from verderer.usecases.context import Context
from verderer.usecases.people.passwords import hash_password
from verderer.usecases.people.users import NewUser

_OPERATOR = Actor(kind=ActorKind.SYSTEM, name="operator")


async def recover(ctx: Context, email: str) -> NewUser:
    """Make the account a platform admin's that is active and has a new one-time password.

    The account is made if there is none; its sessions end. Whoever calls this can change the
    database anyway, so nobody is asked for a right.

    Raises:
        Invalid: it is no e-mail address.
    """
    address = canonical_email(email)
    password = make_one_time_password(ctx.secret())
    hashed = await hash_password(password)
    async with ctx.db.transaction() as tx:
        await people.lock_admins(tx)
        user = await _account(tx, address, hashed)
        await people.set_password(tx, user.id, hashed, must_change=True)
        await people.set_active(tx, user.id, True)
        await people.set_platform_admin(tx, user.id, True)
        ended = await people.end_sessions(tx, user.id)
        entry = audit.Entry(
            action="account.recovered",
            object=f"user:{address}",
            detail={
                "sessions_ended": ended,
                "was_active": user.active,
                "was_platform_admin": user.platform_admin,
            },
        )
        await audit.add(tx, _OPERATOR, [entry])
        user = await people.user_by_id(tx, user.id)
    ctx.wakeups.wake(["auth"])
    return NewUser(user, password)


async def _account(tx: Tx, address: str, hashed: str) -> User:
    try:
        return await people.user_by_email(tx, address)
    except NotFound:
        return await people.add_user(
            tx, email=address, name="", password_hash=hashed, platform_admin=False
        )
