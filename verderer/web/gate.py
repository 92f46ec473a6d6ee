"""Before every page: who reads it and how, and whether a form that was sent is one of ours.

The application's own gate has found the actor and asked whether such a credential may do the
action at all; pages ask again once they know the project.
"""

from __future__ import annotations

import hmac
from collections.abc import Awaitable, Callable
from typing import Any

from litestar import Request
from litestar.handlers.base import BaseRouteHandler

from verderer.core.access import Action
from verderer.core.errors import NotAllowed
from verderer.core.model.actor import Actor
from verderer.web import visitor
from verderer.web.parts import Parts
from verderer.web.visitor import Connection, Visitor

SAFE = frozenset({"GET", "HEAD", "OPTIONS"})
FORM_FIELD = "_form"
FORM_HEADER = "x-form-token"

Guard = Callable[[Connection, BaseRouteHandler], Awaitable[None]]


def asks(action: Action) -> dict[str, Any]:
    """The `opt` of a page for people who are logged in and may do `action`."""
    return {"action": action, "session": True}


def anybody(why: str) -> dict[str, Any]:
    """The `opt` of a page that anybody may see."""
    return {"public": why, "session": True}


def make_gate(parts: Parts) -> Guard:
    """The guard of every page."""

    async def gate(connection: Connection, handler: BaseRouteHandler) -> None:
        del handler
        here = visitor.read(parts, connection, actor_of(connection))
        visitor.put(connection, here)
        if connection.scope.get("method") not in SAFE:
            await _check_form(connection, here)

    return gate


def actor_of(connection: Connection) -> Actor | None:
    """Whom the application's gate found."""
    found = connection.scope.get("user")
    return found if isinstance(found, Actor) else None


async def _check_form(connection: Connection, here: Visitor) -> None:
    """Refuse what another site made the browser send, and what was sent from a stale page."""
    sent = connection.headers.get(FORM_HEADER, "")
    if not sent and isinstance(connection, Request):
        form = await connection.form()
        sent = str(form.get(FORM_FIELD, ""))
    if not hmac.compare_digest(sent.encode(), here.csrf.encode()):
        raise NotAllowed(
            "the form has expired",
            hint="Load the page again and send it once more.",
            code="form_expired",
        )
