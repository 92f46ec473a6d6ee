"""RFC 9457 problem details, read into the one tree of errors.

Our server sends `code`, `hint`, `problems` and `retry_after_s` beside the standard members. What
another machine in between answers (a proxy's page, an empty body) becomes an error all the same.
"""

from __future__ import annotations

import re

import msgspec

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

MAX_MESSAGE = 2_000
MAX_PROBLEMS = 200

# Text from elsewhere reaches terminals and logs: no escape sequences, no direction marks.
_UNPRINTABLE = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069]")

_CLASSES: dict[int, type[Refusal]] = {
    401: NotAuthenticated,
    403: NotAllowed,
    404: NotFound,
    409: Conflict,
    410: NotFound,
    412: Conflict,
    413: TooLarge,
}


class ProblemPlace(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One entry of `problems`: one thing wrong with one place of what was sent."""

    message: str
    field: str = ""
    line: int = 0
    column: int = 0
    hint: str = ""


class ProblemDocument(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A body of type `application/problem+json`."""

    type: str = "about:blank"
    title: str = ""
    status: int = 0
    detail: str = ""
    instance: str = ""
    code: str = ""
    hint: str = ""
    problems: list[ProblemPlace] = []
    retry_after_s: float | None = None


def error_of(
    status: int, body: bytes, *, content_type: str = "", retry_after: str = ""
) -> VerdererError:
    """The error that an answer outside 2xx amounts to.

    `retry_after` is the header's value; only its form in seconds is understood.
    """
    document = _read(body) if "json" in content_type else None
    if document is None:
        document = ProblemDocument(title=f"the server answered {status}")
    message = printable(document.detail or document.title or f"the server answered {status}")
    hint = printable(document.hint)
    if status == 429:
        wait = _wait_s(document, retry_after, otherwise=1.0)
        return TooMany(message, retry_after_s=wait, hint=hint)
    if status in (400, 422):
        return _invalid(document, message, hint)
    if 400 <= status < 500 and status != 408:
        refusal = _CLASSES.get(status, Refusal)
        return refusal(message, hint=hint, code=document.code or None)
    if 300 <= status < 400:
        hint = hint or "check the server's address: scheme, host and port"
    return Fault(message, hint=hint, retry_after_s=_wait_s(document, retry_after, otherwise=1.0))


def printable(text: str) -> str:
    """At most `MAX_MESSAGE` characters without anything that a terminal would act upon."""
    return _UNPRINTABLE.sub("\ufffd", text[:MAX_MESSAGE])


def _invalid(document: ProblemDocument, message: str, hint: str) -> Invalid:
    problems = [
        Problem(
            message=printable(place.message),
            field=printable(place.field),
            line=place.line,
            column=place.column,
            hint=printable(place.hint),
        )
        for place in document.problems[:MAX_PROBLEMS]
    ]
    return Invalid(message, problems=problems, hint=hint, code=document.code or None)


def _read(body: bytes) -> ProblemDocument | None:
    try:
        return msgspec.json.decode(body, type=ProblemDocument)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return None


def _wait_s(document: ProblemDocument, header: str, *, otherwise: float) -> float:
    if document.retry_after_s is not None:
        wait = document.retry_after_s
    else:
        wait = float(header) if header.strip().isdecimal() else otherwise
    return min(max(wait, 0.0), 3_600.0)
