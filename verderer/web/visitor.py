"""Who looks at a page and how they want it: read from cookies once a request."""

from __future__ import annotations

import hashlib
import hmac
from base64 import urlsafe_b64encode
from dataclasses import dataclass
from typing import Any, Final, cast

from litestar import Request
from litestar.connection import ASGIConnection
from litestar.datastructures import Cookie

from verderer.core.access import Action, require
from verderer.core.credentials import SESSION_COOKIE
from verderer.core.errors import NotAuthenticated
from verderer.core.model.actor import Actor
from verderer.web.language import Language
from verderer.web.parts import Parts

Connection = ASGIConnection[Any, Any, Any, Any]
HttpRequest = Request[Any, Any, Any]

THEMES: Final = ("system", "light", "dark")
THEME_COOKIE: Final = "verderer_theme"
LANGUAGE_COOKIE: Final = "verderer_language"
PROJECT_COOKIE: Final = "verderer_project"
FORM_COOKIE: Final = "verderer_form"
"""A random value for forms of people who are not logged in; the session stands in for it later."""
_KEY: Final = "verderer_visitor"
_YEAR: Final = 365 * 86_400


@dataclass(frozen=True, slots=True, kw_only=True)
class Visitor:
    """One request's reader."""

    actor: Actor | None
    session: str
    """The session's token; empty when nobody is logged in."""
    csrf: str
    """What every form of this reader must carry."""
    fresh_form: str
    """To be set as `FORM_COOKIE`; empty when the browser has one."""
    language: Language
    theme: str
    project: str
    """The project that was chosen last; empty: all."""

    @property
    def who(self) -> Actor:
        """The actor, on pages that are only for people who are logged in."""
        if self.actor is None:
            raise NotAuthenticated("log in first")
        return self.actor

    def may(self, action: Action, *, project: int) -> bool:
        """Whether a button should be there at all; the use case decides once more."""
        try:
            require(self.who, action, project=project)
        except Exception as e:  # noqa: BLE001 - any refusal means no
            del e
            return False
        return True


def of(connection: Connection) -> Visitor:
    """The visitor that the gate has put down for this request."""
    return cast("Visitor", connection.scope["state"][_KEY])


def put(connection: Connection, visitor: Visitor) -> None:
    """Called by the gate alone."""
    connection.scope["state"][_KEY] = visitor


def known(connection: Connection) -> Visitor | None:
    """The visitor, or None when the request failed before the gate."""
    return cast("Visitor | None", connection.scope["state"].get(_KEY))


def read(parts: Parts, connection: Connection, actor: Actor | None) -> Visitor:
    """Make a visitor out of the request's cookies and headers."""
    cookies = connection.cookies
    session = cookies.get(SESSION_COOKIE, "") if actor else ""
    form = cookies.get(FORM_COOKIE, "")[:100]
    fresh = "" if session or form else f"{parts.ctx.chance():016x}{parts.ctx.chance():016x}"
    language = parts.catalogues.choose(
        actor.language if actor else "",
        cookies.get(LANGUAGE_COOKIE, ""),
        accept=connection.headers.get("accept-language", ""),
    )
    theme = cookies.get(THEME_COOKIE, "system")
    return Visitor(
        actor=actor,
        session=session,
        csrf=csrf_token(parts.ctx.key, session or form or fresh),
        fresh_form=fresh,
        language=language,
        theme=theme if theme in THEMES else "system",
        project=cookies.get(PROJECT_COOKIE, "")[:63],
    )


def csrf_token(key: bytes, secret: str) -> str:
    """A token that only somebody who can read our pages knows, bound to `secret`."""
    mac = hmac.digest(key, b"verderer form\x00" + secret.encode("utf-8", "replace"), hashlib.sha256)
    return urlsafe_b64encode(mac[:24]).decode()


def cookie(parts: Parts, name: str, value: str, *, life_s: int | None = _YEAR) -> Cookie:
    """A cookie that scripts cannot read and other sites cannot send; `life_s` 0 removes it."""
    return Cookie(
        key=name,
        value=value,
        max_age=life_s,
        httponly=True,
        samesite="lax",
        secure=parts.secure,
        path="/",
    )
