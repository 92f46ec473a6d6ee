"""/api/v1/me and /api/v1/login: one's own account."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any

import msgspec
from litestar import Request, delete, get, post
from litestar.params import FromPath, JSONBody
from msgspec import Meta

from verderer.api.auth import ActorArg, ContextArg
from verderer.api.gate import origin_of
from verderer.core.access import Action
from verderer.core.model.people import Session
from verderer.usecases.people.account import (
    change_password,
    end_session,
    end_sessions,
    list_sessions,
    read_account,
)
from verderer.usecases.people.login import login_program

_PASSWORD = Annotated[str, Meta(max_length=1_024)]


class Login(msgspec.Struct, forbid_unknown_fields=True):
    """How the command line asks for its token."""

    email: Annotated[str, Meta(max_length=254)]
    password: _PASSWORD
    machine: Annotated[str, Meta(min_length=1, max_length=100)] = "command line"
    """Names the token in the list of tokens."""
    new_password: Annotated[str, Meta(max_length=1024)] = ""
    """Replaces the password at the same time; a one-time password must be replaced."""


class LoggedIn(msgspec.Struct, frozen=True):
    """The token is shown this once."""

    token: str
    email: str
    expires_at: datetime | None


class Me(msgspec.Struct, frozen=True):
    """Who the credential stands for."""

    email: str
    name: str
    platform_admin: bool
    read_only: bool
    """Whether this credential may only read."""
    language: str
    roles: dict[str, str]
    """By project name: `member` or `admin`."""


class NewPassword(msgspec.Struct, forbid_unknown_fields=True):
    """Both in plain text, over TLS; neither is kept."""

    old: _PASSWORD
    new: _PASSWORD


class SessionOut(msgspec.Struct, frozen=True):
    """One browser that is logged in."""

    id: str
    created_at: datetime
    seen_at: datetime
    expires_at: datetime
    origin: str
    agent: str


class Sessions(msgspec.Struct, frozen=True):
    """At most 200: the list has one page."""

    items: list[SessionOut]
    next: None = None


@post("/login", opt={"public": "this is where a token comes from"}, tags=["account"])
async def log_in(
    request: Request[Any, Any, Any], context: ContextArg, data: JSONBody[Login]
) -> LoggedIn:
    """Exchange e-mail address and password for a token of 90 days.

    401 `wrong_password`; 403 `must_change_password` with a one-time password; 429 `too_many`
    after ten failures in five minutes.
    """
    made = await login_program(
        context,
        email=data.email,
        password=data.password,
        machine=data.machine,
        new=data.new_password,
        origin=origin_of(request.scope),
    )
    return LoggedIn(made.token, data.email.strip().lower(), made.info.expires_at)


@get("/me", opt={"action": Action.SELF_READ}, tags=["account"])
async def me(context: ContextArg, actor: ActorArg) -> Me:
    """Who this credential stands for, and what it may do where."""
    account = await read_account(context, actor)
    return Me(
        email=account.user.email,
        name=account.user.name,
        platform_admin=account.user.platform_admin,
        read_only=actor.read_only,
        language=account.user.language,
        roles={name: str(role) for name, role in account.roles.items()},
    )


@post("/me/password", opt={"action": Action.SELF_PASSWORD}, status_code=204, tags=["account"])
async def set_password(context: ContextArg, actor: ActorArg, data: JSONBody[NewPassword]) -> None:
    """Replace the password and end every browser's session; tokens keep working.

    403 `wrong_password` when `old` is another one; 422 `weak_password`.
    """
    await change_password(context, actor, old=data.old, new=data.new)


@get("/me/sessions", opt={"action": Action.SELF_READ}, tags=["account"])
async def sessions(context: ContextArg, actor: ActorArg) -> Sessions:
    """One's own browsers that are logged in, the one seen last first."""
    return Sessions([_session(s) for s in await list_sessions(context, actor)])


@delete("/me/sessions", opt={"action": Action.SELF_CHANGE}, tags=["account"])
async def end_all(context: ContextArg, actor: ActorArg) -> None:
    """End all of them at once."""
    await end_sessions(context, actor)


@delete("/me/sessions/{session:str}", opt={"action": Action.SELF_CHANGE}, tags=["account"])
async def end_one(context: ContextArg, actor: ActorArg, session: FromPath[str]) -> None:
    """End one of them at once."""
    await end_session(context, actor, session)


def _session(session: Session) -> SessionOut:
    return SessionOut(
        session.id,
        session.created_at,
        session.seen_at,
        session.expires_at,
        session.origin,
        session.agent,
    )


ROUTES = (log_in, me, set_password, sessions, end_all, end_one)
