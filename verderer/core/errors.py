"""Every error that the product raises on purpose, as one tree.

A `Refusal` is somebody's request that cannot be granted as it stands: it has a stable code, a
sentence for a person and a remedy, and is never logged as an error. A `Fault` is the world not
working: trying again later may help.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """One thing wrong with one place of a document that somebody sent."""

    message: str
    field: str = ""
    """Path such as `steps[2].resources.limits.cpu`; empty for the document as a whole."""
    line: int = 0
    """1-based; 0 when there is no text to point at."""
    column: int = 0
    hint: str = ""


class VerdererError(Exception):
    """The root: catch it only at a door."""

    code = "error"

    def __init__(self, message: str, *, hint: str = "", code: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint
        if code is not None:
            self.code = code


class Refusal(VerdererError):
    """The request is understood and refused (HTTP 4xx)."""

    code = "refused"


class Invalid(Refusal):
    """What was sent is malformed; `problems` says where and how to mend it (422)."""

    code = "invalid"

    def __init__(
        self,
        message: str,
        *,
        problems: Sequence[Problem] = (),
        hint: str = "",
        code: str | None = None,
    ) -> None:
        super().__init__(message, hint=hint, code=code)
        self.problems = tuple(problems)


class NotAuthenticated(Refusal):
    """Nobody is logged in, or the credential is unknown, expired or revoked (401)."""

    code = "not_authenticated"


class NotAllowed(Refusal):
    """The actor is known and may not do this (403)."""

    code = "not_allowed"


class NotFound(Refusal):
    """It does not exist, or the actor may not know that it does (404)."""

    code = "not_found"


class Conflict(Refusal):
    """It cannot be done in the present state, or somebody else was first (409)."""

    code = "conflict"


class IllegalMove(Conflict):
    """A state machine has no such edge."""

    code = "illegal_move"


class TooLarge(Refusal):
    """More bytes or items than the limit (413)."""

    code = "too_large"


class TooMany(Refusal):
    """Too often; `retry_after_s` says when to come back (429)."""

    code = "too_many"

    def __init__(self, message: str, *, retry_after_s: float, hint: str = "") -> None:
        super().__init__(message, hint=hint)
        self.retry_after_s = retry_after_s


class Fault(VerdererError):
    """Something outside does not answer or broke (HTTP 503); a loop tries again."""

    code = "fault"

    def __init__(
        self,
        message: str,
        *,
        retry_after_s: float = 1.0,
        hint: str = "",
        detail: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(message, hint=hint)
        self.retry_after_s = retry_after_s
        self.detail = dict(detail or {})
