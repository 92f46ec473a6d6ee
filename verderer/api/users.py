"""/api/v1/users: people, for platform admins."""

from __future__ import annotations

from typing import Annotated, Any

import msgspec
from litestar import Request, Response, get, patch, post
from litestar.params import FromPath, JSONBody
from msgspec import UNSET, Meta, UnsetType

from verderer.api.auth import ActorArg, ContextArg
from verderer.api.etags import tagged
from verderer.api.paging import USUAL, AfterArg, LimitArg, Page, page_of, read_cursor
from verderer.core.access import Action
from verderer.core.model.people import User
from verderer.usecases.people.users import (
    activate_user,
    create_user,
    deactivate_user,
    list_users,
    read_user,
    reset_password,
    set_platform_admin,
)
from verderer.wire.users import UserInfo, UserMade

_MANAGE = {"action": Action.USER_MANAGE}


class NewUserIn(msgspec.Struct, forbid_unknown_fields=True):
    """Somebody who shall be able to log in."""

    email: Annotated[str, Meta(max_length=254)]
    name: Annotated[str, Meta(max_length=200)] = ""
    platform_admin: bool = False


class UserChange(msgspec.Struct, forbid_unknown_fields=True):
    """What is not given stays as it is."""

    active: bool | UnsetType = UNSET
    platform_admin: bool | UnsetType = UNSET


@get("/users", opt=_MANAGE, tags=["users"])
async def users(
    context: ContextArg, actor: ActorArg, limit: LimitArg = USUAL, after: AfterArg = ""
) -> Page[UserInfo]:
    """All accounts, by e-mail address."""
    start = read_cursor(after, str) or ""
    rows = await list_users(context, actor, after=start, limit=limit + 1)
    return page_of(rows, limit, key=lambda u: u.email, show=show_user)


@post("/users", opt=_MANAGE, tags=["users"])
async def make(context: ContextArg, actor: ActorArg, data: JSONBody[NewUserIn]) -> UserMade:
    """Make an account with a one-time password."""
    made = await create_user(
        context, actor, email=data.email, name=data.name, platform_admin=data.platform_admin
    )
    return UserMade(user=show_user(made.user), password=made.password)


@get("/users/{email:str}", opt=_MANAGE, tags=["users"])
async def one(
    request: Request[Any, Any, Any], context: ContextArg, actor: ActorArg, email: FromPath[str]
) -> Response[UserInfo]:
    """One account."""
    return tagged(request, show_user(await read_user(context, actor, email)))


@patch("/users/{email:str}", opt=_MANAGE, tags=["users"])
async def change(
    context: ContextArg, actor: ActorArg, email: FromPath[str], data: JSONBody[UserChange]
) -> UserInfo:
    """Deactivate somebody, which ends sessions and tokens at once, or change what they are.

    409 when it is the caller's own account or the last platform admin's.
    """
    user = await read_user(context, actor, email)
    if data.platform_admin is not UNSET:
        user = await set_platform_admin(context, actor, email, admin=data.platform_admin)
    if data.active is not UNSET:
        act = activate_user if data.active else deactivate_user
        user = await act(context, actor, email)
    return show_user(user)


@post("/users/{email:str}/password", opt=_MANAGE, tags=["users"])
async def reset(context: ContextArg, actor: ActorArg, email: FromPath[str]) -> UserMade:
    """Give somebody a new one-time password and end their sessions; tokens keep working."""
    made = await reset_password(context, actor, email)
    return UserMade(user=show_user(made.user), password=made.password)


def show_user(user: User) -> UserInfo:
    """What a platform admin sees of an account."""
    return UserInfo(
        email=user.email,
        name=user.name,
        platform_admin=user.platform_admin,
        active=user.active,
        must_change=user.must_change,
        created_at=user.created_at,
    )


ROUTES = (users, make, one, change, reset)
