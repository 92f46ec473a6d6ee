"""Everybody's accounts, for platform admins."""

from __future__ import annotations

from dataclasses import dataclass

from litestar import Response, get, post
from litestar.response import Redirect

from verderer.core.access import Action
from verderer.core.errors import Invalid
from verderer.core.model.people import User
from verderer.usecases.people import users
from verderer.usecases.people.users import NewUser
from verderer.web import visitor
from verderer.web.gate import asks
from verderer.web.parts import PartsArg
from verderer.web.render import RendererArg
from verderer.web.visitor import HttpRequest

_PAGE = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class UsersPage:
    """Context of `users.html`."""

    users: tuple[User, ...]
    next: str
    made: NewUser | None
    """An account with its one-time password: shown now and never again."""


@get("/settings/users", opt=asks(Action.USER_MANAGE))
async def users_page(request: HttpRequest, parts: PartsArg, renderer: RendererArg) -> Response[str]:
    """By e-mail address."""
    return await _page(request, parts, renderer, made=None)


@post("/settings/users", opt=asks(Action.USER_MANAGE), status_code=200)
async def create_user(
    request: HttpRequest, parts: PartsArg, renderer: RendererArg
) -> Response[str]:
    """Make an account and show its one-time password once."""
    form = await request.form()
    made = await users.create_user(
        parts.ctx,
        visitor.of(request).who,
        email=str(form.get("email", "")),
        name=str(form.get("name", "")),
        platform_admin=form.get("platform_admin") == "1",
    )
    return await _page(request, parts, renderer, made=made)


@post("/settings/users/change", opt=asks(Action.USER_MANAGE), status_code=200)
async def change_user(
    request: HttpRequest, parts: PartsArg, renderer: RendererArg
) -> Response[str]:
    """Deactivate, activate, or give a new one-time password."""
    who = visitor.of(request).who
    form = await request.form()
    email = str(form.get("email", ""))
    match form.get("what"):
        case "deactivate":
            await users.deactivate_user(parts.ctx, who, email)
        case "activate":
            await users.activate_user(parts.ctx, who, email)
        case "reset":
            made = await users.reset_password(parts.ctx, who, email)
            return await _page(request, parts, renderer, made=made)
        case _:
            raise Invalid("there is no such change")
    return Redirect("/settings/users", status_code=303)


async def _page(
    request: HttpRequest, parts: PartsArg, renderer: RendererArg, *, made: NewUser | None
) -> Response[str]:
    after = request.query_params.get("after", "")[:254]
    found = await users.list_users(parts.ctx, visitor.of(request).who, after=after, limit=_PAGE + 1)
    page = UsersPage(
        users=tuple(found[:_PAGE]),
        next=found[_PAGE - 1].email if len(found) > _PAGE else "",
        made=made,
    )
    return renderer.page(request, "users.html", page)


ROUTES = (users_page, create_user, change_user)
