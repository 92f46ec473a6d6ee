"""Errors as MLflow's clients turn them into exceptions: `error_code` and `message`."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

import msgspec
import structlog
from litestar import Request, Response
from litestar.exceptions import HTTPException
from litestar.types import ExceptionHandlersMap

from verderer.api.errors import translate
from verderer.core.errors import Invalid, NotFound, VerdererError
from verderer.objects.serving import RangeNotSatisfiable

log = structlog.get_logger("verderer.api.mlflow")

# By the status that the rest of the API answers with: the code, and the status that goes with it.
_BY_STATUS: Mapping[int, tuple[str, int]] = MappingProxyType(
    {
        400: ("BAD_REQUEST", 400),
        401: ("UNAUTHENTICATED", 401),
        403: ("PERMISSION_DENIED", 403),
        404: ("ENDPOINT_NOT_FOUND", 404),
        405: ("BAD_REQUEST", 405),
        409: ("RESOURCE_CONFLICT", 409),
        413: ("INVALID_PARAMETER_VALUE", 413),
        422: ("INVALID_PARAMETER_VALUE", 400),
        429: ("REQUEST_LIMIT_EXCEEDED", 429),
        503: ("TEMPORARILY_UNAVAILABLE", 503),
    }
)
_BY_CODE: Mapping[str, tuple[str, int]] = MappingProxyType(
    {
        "already_exists": ("RESOURCE_ALREADY_EXISTS", 400),
        "INVALID_STATE": ("INVALID_STATE", 400),
        "not_implemented": ("NOT_IMPLEMENTED", 501),
        "no_endpoint": ("ENDPOINT_NOT_FOUND", 404),
    }
)


class NotSupported(VerdererError):
    """MLflow has this and we do not: the client falls back to what we have (501)."""

    code = "not_implemented"


def no_endpoint() -> NotFound:
    """The answer at addresses that MLflow may have and we do not."""
    return NotFound("this tracking server has no such endpoint", code="no_endpoint")


def answer_error(request: Request[Any, Any, Any], error: Exception) -> Response[bytes]:
    """The exception handler of these routes; what is not a client's doing is logged."""
    code, status, message, headers = _described(request, error)
    body = {"error_code": code, "message": message}
    return Response(
        msgspec.json.encode(body),
        status_code=status,
        media_type="application/json",
        headers=headers,
    )


HANDLERS: ExceptionHandlersMap = {
    VerdererError: answer_error,
    HTTPException: answer_error,
    Exception: answer_error,
}


def _described(
    request: Request[Any, Any, Any], error: Exception
) -> tuple[str, int, str, dict[str, str]]:
    if isinstance(error, RangeNotSatisfiable):
        return "BAD_REQUEST", 416, error.message, {"content-range": f"bytes */{error.size}"}
    if isinstance(error, VerdererError) and error.code in _BY_CODE:
        return *_BY_CODE[error.code], error.message, {}
    chance = request.app.state.context.chance
    answer = translate(error, lambda: f"{chance():016x}")
    headers = dict(answer.headers)
    if answer.body.incident:
        _log(request, error, answer.body.incident)
        code, status = _BY_STATUS.get(answer.status, ("INTERNAL_ERROR", 500))
        return code, status, f"{answer.body.detail} Incident {answer.body.incident}.", headers
    code, status = _BY_STATUS.get(answer.status, ("BAD_REQUEST", answer.status))
    if isinstance(error, NotFound):
        code = "RESOURCE_DOES_NOT_EXIST"
    if isinstance(error, Invalid):
        return code, status, _with_hint(error), headers
    return code, status, answer.body.detail, headers


def _with_hint(error: Invalid) -> str:
    return f"{error.message} ({error.hint})" if error.hint else error.message


def _log(request: Request[Any, Any, Any], error: Exception, incident: str) -> None:
    log.error(
        "tracking request failed",
        exc_info=error,
        incident=incident,
        method=request.scope.get("method"),
        route=request.scope.get("path_template", ""),
    )
