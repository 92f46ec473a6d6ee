"""What people see when something is refused or broken: what happened, why, what to do next."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

import structlog
from litestar import Request, Response
from litestar.exceptions import HTTPException
from litestar.response import Redirect

from verderer.core.errors import (
    Conflict,
    Fault,
    Invalid,
    NotAllowed,
    NotAuthenticated,
    NotFound,
    Problem,
    Refusal,
    TooLarge,
    TooMany,
    VerdererError,
)
from verderer.web import visitor
from verderer.web.gate import actor_of
from verderer.web.language import N_
from verderer.web.parts import Parts
from verderer.web.render import Renderer

log = structlog.get_logger(__name__)

_STATUS: Mapping[type[VerdererError], int] = {
    Invalid: 422,
    NotAuthenticated: 401,
    NotAllowed: 403,
    NotFound: 404,
    Conflict: 409,
    TooLarge: 413,
    TooMany: 429,
    Refusal: 400,
    Fault: 503,
}
_TITLES = {
    400: N_("That did not work"),
    401: N_("Log in first"),
    403: N_("You may not do this"),
    404: N_("Nothing is here"),
    405: N_("That did not work"),
    409: N_("It cannot be done right now"),
    413: N_("That is too large"),
    422: N_("Something needs mending"),
    429: N_("Too often"),
    500: N_("Something broke on our side"),
    503: N_("A part of the platform does not answer"),
}
_HINTS = {
    404: N_("It does not exist, or it belongs to a project that you are not a member of."),
    500: N_("It was written to the log. Try again; if it stays, tell an admin the time."),
    503: N_("What was accepted is safe. Try again in a moment."),
}
# Sentences with a code of their own, said in every language.
SENTENCES = {
    "wrong_password": N_("E-mail address or password is wrong."),
    "form_expired": N_("The form has expired. Load the page again and send it once more."),
    "foreign_form": N_("This form was sent from another site."),
    "must_change_password": N_("The one-time password must be replaced first."),
    "weak_password": N_("Choose another password."),
    "too_many": N_("Too many attempts. Wait a few minutes."),
    "not_authenticated": N_("Log in first."),
    "cross_site": N_("This form was sent from another site."),
    "wrong_host": N_("This server is not known by that name."),
    "illegal_move": N_("Its present state does not allow that. Somebody else may have been first."),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class ErrorPage:
    """Context of `error.html`."""

    status: int
    title: str
    message: str
    hint: str
    code: str
    problems: tuple[Problem, ...] = ()


def status_of(error: VerdererError) -> int:
    """The HTTP status of an error of ours."""
    return next((_STATUS[kind] for kind in type(error).__mro__ if kind in _STATUS), 500)


def make_handlers(
    parts: Parts, renderer: Renderer
) -> dict[int | type[Exception], Callable[[Request[Any, Any, Any], Any], Response[Any]]]:
    """Exception handlers of every page."""

    def ours(request: Request[Any, Any, Any], error: VerdererError) -> Response[Any]:
        if isinstance(error, NotAuthenticated) and error.code == "not_authenticated":
            return _to_login(request)
        if error.code == "must_change_password" and request.method == "GET":
            return Redirect("/password", status_code=303)
        if isinstance(error, Fault):
            log.warning("page failed", path=request.url.path, error=str(error))
        problems = error.problems if isinstance(error, Invalid) else ()
        return show(request, status_of(error), error.message, error.hint, error.code, problems)

    def http(request: Request[Any, Any, Any], error: HTTPException) -> Response[Any]:
        if error.status_code >= 500:
            return broken(request, error)
        return show(request, error.status_code, "", "", "", ())

    def broken(request: Request[Any, Any, Any], error: Exception) -> Response[Any]:
        log.error("page broke", path=request.url.path, exc_info=error)
        return show(request, 500, "", "", "", ())

    def show(
        request: Request[Any, Any, Any],
        status: int,
        message: str,
        hint: str,
        code: str,
        problems: tuple[Problem, ...],
    ) -> Response[Any]:
        if visitor.known(request) is None:
            visitor.put(request, visitor.read(parts, request, actor_of(request)))
        page = ErrorPage(
            status=status,
            title=_TITLES.get(status, _TITLES[400]),
            message=SENTENCES.get(code, message),
            hint=hint or _HINTS.get(status, ""),
            code=code,
            problems=problems,
        )
        # htmx puts what comes back into the page's place for messages instead of a block.
        inline = bool(request.headers.get("hx-request"))
        headers = {"HX-Retarget": "#notice", "HX-Reswap": "innerHTML"} if inline else {}
        template = "error_notice.html" if inline else "error.html"
        return renderer.page(request, template, page, status=status, headers=headers)

    return {VerdererError: ours, HTTPException: http, Exception: broken}


def _to_login(request: Request[Any, Any, Any]) -> Response[Any]:
    where = request.url.path + (f"?{request.url.query}" if request.url.query else "")
    if request.headers.get("hx-request"):
        return Response("", status_code=401, headers={"HX-Redirect": "/login"})
    after = f"?next={quote(where, safe='')}" if request.method == "GET" and where != "/" else ""
    return Redirect(f"/login{after}", status_code=303)
