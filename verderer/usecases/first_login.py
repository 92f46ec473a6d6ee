"""The first login of somebody who has no browser at hand: a password of their own, then a token."""

from __future__ import annotations

from verderer.core.errors import Conflict
from verderer.usecases.account import change_password
from verderer.usecases.authenticate import authenticate
from verderer.usecases.context import Context
from verderer.usecases.login import NewToken, login, login_program, logout


async def first_login(
    ctx: Context, *, email: str, password: str, new: str, machine: str, origin: str = ""
) -> NewToken:
    """Replace the one-time `password` by `new` and make a token of 90 days.

    Raises:
        NotAuthenticated, TooMany: as `login`.
        Conflict: the password is not a one-time password.
        Invalid: `new` is weak, or `machine` is not a name.
    """
    opened = await login(ctx, email=email, password=password, origin=origin, user_agent=machine)
    try:
        if not opened.user.must_change:
            raise Conflict(
                "the password was replaced already", hint="Log in with the one of your own."
            )
        actor = await authenticate(ctx, session=opened.token, origin=origin)
        await change_password(ctx, actor, old=password, new=new)
    finally:
        await logout(ctx, opened.token, origin=origin)
    return await login_program(ctx, email=email, password=new, machine=machine, origin=origin)
