"""Signature version 4 of AWS for a small request, as a pure function."""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from urllib.parse import quote

_ALGORITHM = "AWS4-HMAC-SHA256"


@dataclass(frozen=True, slots=True)
class Credential:
    """Who signs, and for which region."""

    access_key: str = field(repr=False)
    secret_key: str = field(repr=False)
    region: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """What is to be signed."""

    method: str
    host: str
    """With the port where the URL names one."""
    path: str
    """Unquoted; S3 quotes a path once."""
    query: Mapping[str, str]
    headers: Mapping[str, str]
    """With lower-case names."""
    body: bytes


def signed_headers(credential: Credential, request: Request, *, now: datetime) -> dict[str, str]:
    """The headers to send: the request's, the date, the body's hash and the signature over all.

    `now` is UTC.
    """
    stamp = now.strftime("%Y%m%dT%H%M%SZ")
    digest = hashlib.sha256(request.body).hexdigest()
    headers = {
        **request.headers,
        "host": request.host,
        "x-amz-content-sha256": digest,
        "x-amz-date": stamp,
    }
    names = ";".join(sorted(headers))
    canonical = "\n".join(
        [
            request.method,
            quote(request.path, safe="/-_.~"),
            "&".join(f"{_quoted(n)}={_quoted(request.query[n])}" for n in sorted(request.query)),
            "".join(f"{name}:{headers[name].strip()}\n" for name in sorted(headers)),
            names,
            digest,
        ]
    )
    scope = f"{stamp[:8]}/{credential.region}/s3/aws4_request"
    hashed = hashlib.sha256(canonical.encode()).hexdigest()
    signature = hmac.new(
        _signing_key(credential, stamp[:8]),
        f"{_ALGORITHM}\n{stamp}\n{scope}\n{hashed}".encode(),
        hashlib.sha256,
    ).hexdigest()
    headers["authorization"] = (
        f"{_ALGORITHM} Credential={credential.access_key}/{scope}, "
        f"SignedHeaders={names}, Signature={signature}"
    )
    return headers


def _signing_key(credential: Credential, day: str) -> bytes:
    key = f"AWS4{credential.secret_key}".encode()
    for part in (day, credential.region, "s3", "aws4_request"):
        key = hmac.new(key, part.encode(), hashlib.sha256).digest()
    return key


def _quoted(text: str) -> str:
    return quote(text, safe="-_.~")
