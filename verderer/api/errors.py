"""The only translator from errors to HTTP: RFC 9457 problem details."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import TracebackType
from typing import Any

import msgspec
import structlog
from litestar import Request, Response
from litestar.exceptions import HTTPException, ValidationException

from verderer.api.codes import CODES
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
from verderer.objects.serving import RangeNotSatisfiable

log = structlog.get_logger("verderer.api")

MEDIA_TYPE = "application/problem+json"

STATUS: tuple[tuple[type[VerdererError], int], ...] = (
    (NotAuthenticated, 401),
    (NotAllowed, 403),
    (NotFound, 404),
    (Conflict, 409),
    (TooLarge, 413),
    (Invalid, 422),
    (TooMany, 429),
    (Refusal, 400),
    (Fault, 503),
)
# Refusals that HTTP has a word of its own for.
_BY_CODE = {"malformed": 400, "method_not_allowed": 405, "range_not_satisfiable": 416}
_FRAMEWORK = {
    400: "malformed",
    401: "not_authenticated",
    403: "not_allowed",
    404: "not_found",
    405: "method_not_allowed",
    413: "too_large",
    415: "malformed",
    429: "too_many",
    503: "fault",
}
_MESSAGES = {
    404: "there is nothing at this address",
    405: "this address does not take that method",
    413: "the body is larger than this address takes",
}


class Place(msgspec.Struct, omit_defaults=True, frozen=True):
    """One thing wrong with one place of what was sent."""

    message: str
    field: str = ""
    line: int = 0
    column: int = 0
    hint: str = ""


class ProblemDetails(msgspec.Struct, omit_defaults=True, frozen=True, kw_only=True):
    """What is sent when something went wrong (RFC 9457)."""

    type: str
    """`/problems/` and the code: an address that explains it."""
    title: str
    status: int
    code: str
    """Stable: programs may decide by it."""
    detail: str
    """A sentence for a person."""
    hint: str = ""
    problems: list[Place] = []
    retry_after_s: float | None = None
    incident: str = ""
    """Stands in the server's log too, beside what really happened."""


@dataclass(frozen=True, slots=True)
class Answer:
    """A translated error."""

    status: int
    body: ProblemDetails
    headers: Mapping[str, str]

    def encoded(self) -> bytes:
        return msgspec.json.encode(self.body)


def translate(error: BaseException, incident: Callable[[], str]) -> Answer:
    """What HTTP says about `error`; `incident` names what only the log may describe."""
    if isinstance(error, Fault):
        return _broken(error, "fault", incident())
    if isinstance(error, VerdererError):
        return _refused(error)
    if isinstance(error, HTTPException) and error.status_code < 500:
        return _framework(error)
    if isinstance(error, RecursionError) and _while_decoding(error.__traceback__):
        return _refused(Invalid("the document is nested too deeply", code="malformed"))
    return _broken(error, "internal", incident())


def answer_error(request: Request[Any, Any, Any], error: Exception) -> Response[bytes]:
    """The exception handler of every route that does not bring its own."""
    chance = request.app.state.context.chance
    answer = translate(error, lambda: f"{chance():016x}")
    if answer.body.incident:
        _log(request, error, answer)
    return Response(
        answer.encoded(),
        status_code=answer.status,
        media_type=MEDIA_TYPE,
        headers=dict(answer.headers),
    )


def _log(request: Request[Any, Any, Any], error: Exception, answer: Answer) -> None:
    """The template of the path, since the path itself may hold what is nobody's business."""
    facts = {
        "incident": answer.body.incident,
        "method": request.scope.get("method"),
        "route": request.scope.get("path_template", ""),
    }
    if isinstance(error, Fault):
        log.warning("request failed", error=error.message, detail=error.detail, **facts)
    else:
        log.error("request failed unexpectedly", exc_info=error, **facts)


def status_of(error: VerdererError) -> int:
    """The HTTP status that it is answered with."""
    by_class = next((s for kind, s in STATUS if isinstance(error, kind)), 500)
    return _BY_CODE.get(error.code, by_class)


def _refused(error: VerdererError) -> Answer:
    status = status_of(error)
    problems = error.problems if isinstance(error, Invalid) else ()
    wait_s = error.retry_after_s if isinstance(error, TooMany) else None
    headers = {}
    if status == 401:
        headers["WWW-Authenticate"] = "Bearer"
    if wait_s is not None:
        headers["Retry-After"] = str(math.ceil(wait_s))
    if isinstance(error, RangeNotSatisfiable):
        headers["Content-Range"] = f"bytes */{error.size}"
    body = _body(
        status, error.code, error.message, hint=error.hint, problems=problems, retry_after_s=wait_s
    )
    return Answer(status, body, headers)


def _framework(error: HTTPException) -> Answer:
    if isinstance(error, ValidationException):
        problems = [_problem(extra) for extra in error.extra or []]
        return _refused(Invalid("what was sent does not fit", problems=problems))
    status = error.status_code
    detail = _MESSAGES.get(status) or f"the request cannot be understood: {error.detail}"
    body = _body(status, _FRAMEWORK.get(status, "refused"), detail)
    return Answer(status, body, dict(error.headers or {}))


def _problem(extra: Any) -> Problem:
    """What the framework says about one value: `message`, often `key`, sometimes `source`."""
    if not isinstance(extra, Mapping):
        return Problem(message=str(extra))
    message, key = str(extra.get("message", "")), str(extra.get("key", ""))
    for start in ("Object missing required field `", "Object contains unknown field `"):
        if message.startswith(start):
            parent = "" if key in ("", "data") else key + "."
            key = parent + message[len(start) :].rstrip("`")
            message = "is required" if "missing" in start else "is not known here"
    if key == "data":
        key, message = "", "a body is required" if message == "'data'" else message
    return Problem(message=message, field=key)


def _broken(error: BaseException, code: str, incident: str) -> Answer:
    """The message of a fault is for operators and stays in the log."""
    wait_s = error.retry_after_s if isinstance(error, Fault) else None
    status = 503 if code == "fault" else 500
    headers = {"Retry-After": str(math.ceil(wait_s))} if wait_s is not None else {}
    detail = CODES[code].meaning
    body = _body(status, code, detail, retry_after_s=wait_s, incident=incident)
    return Answer(status, body, headers)


def _body(status: int, code: str, detail: str, **more: Any) -> ProblemDetails:
    problems = [
        Place(p.message, p.field, p.line, p.column, p.hint) for p in more.pop("problems", ())
    ]
    known = CODES.get(code)
    return ProblemDetails(
        type=f"/problems/{code}",
        title=known.title if known else code.replace("_", " ").capitalize(),
        status=status,
        code=code,
        detail=detail,
        problems=problems,
        **more,
    )


def _while_decoding(trace: TracebackType | None) -> bool:
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    return trace is not None and trace.tb_frame.f_code.co_name.startswith("decode")
