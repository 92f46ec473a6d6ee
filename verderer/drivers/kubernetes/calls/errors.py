"""What the API server answers, as our own errors: can it be granted, and does waiting help?

A refusal ends the attempt that asked; so whatever the platform has to mend (credentials, a quota
that is full, a server that is busy) is a `Fault`, which is tried again.
"""

from __future__ import annotations

import re
import ssl
from typing import Final

import httpx2
import msgspec

from verderer.core.errors import (
    Conflict,
    Fault,
    Invalid,
    NotAllowed,
    NotFound,
    Refusal,
    TooLarge,
    VerdererError,
)
from verderer.drivers.kubernetes.seen.sights import Details, ErrorStatus

EXISTS: Final = "already_exists"
CHANGED: Final = "changed_meanwhile"
NO_RIGHT: Final = "no_right"
QUOTA: Final = "quota"
POLICY: Final = "policy"

_DECODER: Final = msgspec.json.Decoder(ErrorStatus)
_RULE: Final = re.compile(
    r'cannot (?P<verb>[a-z]+) resource "(?P<resource>[^"]+)"'
    r'(?: in API group "(?P<group>[^"]*)")?(?: in the namespace "(?P<namespace>[^"]+)")?'
)


class Gone(Fault):
    """The version that a list or a watch went on from is too old: list again."""

    code = "gone"


class Silence(Fault):
    """A long answer has brought nothing for a while: whether anybody is there is not known."""

    code = "silence"


def answered(code: int, body: bytes, *, retry_after: str = "") -> VerdererError:
    """The error behind an answer with status `code` of 400 or more."""
    status = _status(code, body)
    message = status.message or f"the API server answered {code}"
    if code in _BY_CODE:
        kind, hint = _BY_CODE[code]
        return kind(message, hint=hint)
    if code == 403:
        return _forbidden(message)
    if code == 409:
        return _conflict(status, message)
    return _busy(code, message, status, retry_after)


def refused_pod(message: str) -> VerdererError:
    """Why a Job's controller could not make a pod, from its event."""
    return _forbidden(message)


def unreachable(error: httpx2.HTTPError) -> Fault:
    """Why no answer came."""
    cause: BaseException | None = error
    while cause is not None:
        if isinstance(cause, ssl.SSLCertVerificationError):
            return Fault(
                f"the API server's certificate is not accepted: {cause.verify_message}",
                hint=_certificate_hint(cause.verify_message or ""),
            )
        cause = cause.__cause__ or cause.__context__
    if isinstance(error, httpx2.TimeoutException):
        return Fault("the API server did not answer in time", hint="is it overloaded or far away?")
    return Fault(
        f"the API server cannot be reached: {str(error) or type(error).__name__}",
        hint="check its address and the network between it and the agent",
    )


def _status(code: int, body: bytes) -> ErrorStatus:
    try:
        return _DECODER.decode(body)
    except msgspec.DecodeError:
        text = body[:300].decode("utf-8", "replace").strip()
        return ErrorStatus(code=code, message=f"the API server answered {code}: {text}")


_BY_CODE: Final[dict[int, tuple[type[VerdererError], str]]] = {
    400: (Invalid, ""),
    401: (
        Fault,
        "the agent's credential is not accepted: its token has expired or its account is gone",
    ),
    404: (NotFound, ""),
    405: (Refusal, "is the API server's version supported?"),
    410: (Gone, ""),
    413: (TooLarge, "put large data into object storage or into the image"),
    422: (Invalid, ""),
}


def _forbidden(message: str) -> VerdererError:
    """A 403 says many different things."""
    if "exceeded quota" in message or "failed quota" in message:
        return Fault(message, retry_after_s=10.0, hint="it waits until the quota has room")
    if "being terminated" in message:
        return Fault(message, retry_after_s=5.0, hint="it waits until the namespace is gone")
    if rule := missing_rule(message):
        return NotAllowed(message, hint=f"grant the agent: {rule}", code=NO_RIGHT)
    return NotAllowed(
        message,
        hint="a policy of the cluster refuses it; change the step or the policy",
        code=POLICY,
    )


def missing_rule(message: str) -> str:
    """The right that a refusal by RBAC names; empty when it is another refusal."""
    found = _RULE.search(message)
    if found is None:
        return ""
    group = found["group"] or ""
    resource = f"{found['resource']}.{group}" if group else found["resource"]
    where = f" in namespace {found['namespace']}" if found["namespace"] else ""
    return f"{found['verb']} {resource}{where}"


def _conflict(status: ErrorStatus, message: str) -> VerdererError:
    if status.reason == "AlreadyExists":
        return Conflict(message, code=EXISTS)
    details = status.details or Details()
    if details.kind == "resourcequotas" or "resourcequotas" in message:
        # Others counted against the same quota at the same instant.
        return Fault(message, retry_after_s=0.2)
    return Conflict(message, code=CHANGED)


def _busy(code: int, message: str, status: ErrorStatus, retry_after: str) -> Fault:
    details = status.details or Details()
    wait = float(details.retry_after_seconds or 0)
    if retry_after.strip().isdigit():
        wait = max(wait, float(retry_after))
    hint = "the API server is busy" if code == 429 else ""
    if "webhook" in message:
        hint = "an admission webhook of the cluster does not work: mend it or take it away"
    return Fault(message, retry_after_s=min(max(wait, 1.0), 60.0), hint=hint)


def _certificate_hint(message: str) -> str:
    if "expired" in message or "not yet valid" in message:
        return "renew it, or correct the clock of this machine"
    if "match" in message:
        return "use an address that the certificate names"
    return "give the agent the certificate authority of the cluster (in the kubeconfig)"
