"""Administers the S3 bucket itself: existence, versioning, and the rule that expires `tmp/`.

The client library of the data paths has none of this. A local store has no bucket, and some S3
servers lack a feature; both are answers, not errors, so that a doctor can print them.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum
from urllib.parse import urlsplit

import httpx2

from verderer.core.errors import Fault
from verderer.objects.config import Backend, ObjectsConfig, locate
from verderer.objects.keys import TMP_PREFIX
from verderer.objects.s3 import lifecycle
from verderer.objects.s3.signing import Credential, Request, signed_headers

TMP_DAYS = 7
_TIMEOUT_S = 30.0
_MAX_ANSWER = 1024 * 1024


class State(StrEnum):
    """How one setting of the bucket stands."""

    ON = "on"
    OFF = "off"
    NOT_APPLICABLE = "not applicable"
    """The store is not an S3 bucket."""
    NOT_SUPPORTED = "not supported"
    """This S3 server has no such feature; our own collector still runs."""


@dataclass(frozen=True, slots=True)
class _Answer:
    status: int
    body: str

    @property
    def code(self) -> str:
        """S3's error code, such as `NoSuchBucket`; empty when there is none."""
        _, _, rest = self.body.partition("<Code>")
        return rest.partition("</Code>")[0][:64]


class BucketAdmin:
    """Asks and changes the bucket's settings; each call is one or two small requests.

    Raises (every method): `Fault` when the server cannot be reached or refuses.
    """

    def __init__(
        self, config: ObjectsConfig, *, clock: Callable[[], datetime] = lambda: datetime.now(UTC)
    ) -> None:
        self._config = config
        self._location = locate(config)
        self._clock = clock

    async def exists(self) -> State:
        """Whether the bucket is there: `ON` or `OFF`."""
        if not self._applicable:
            return State.NOT_APPLICABLE
        answer = await self._ask("HEAD", "")
        if answer.status == 404:
            return State.OFF
        return self._settled(answer, "look up", State.ON)

    async def create(self) -> State:
        """Make the bucket; nothing happens when it is ours already."""
        if not self._applicable:
            return State.NOT_APPLICABLE
        answer = await self._ask("PUT", "", _location_document(self._region))
        if answer.code == "BucketAlreadyOwnedByYou":
            return State.ON
        return self._settled(answer, "create", State.ON)

    async def versioning(self) -> State:
        """Whether the bucket keeps old versions of objects."""
        if not self._applicable:
            return State.NOT_APPLICABLE
        answer = await self._ask("GET", "versioning")
        return self._settled(answer, "read the versioning of", _versioning(answer.body))

    async def set_versioning(self, on: bool) -> State:
        """Begin or suspend keeping old versions."""
        if not self._applicable:
            return State.NOT_APPLICABLE
        status = "Enabled" if on else "Suspended"
        body = _document("VersioningConfiguration", f"<Status>{status}</Status>")
        answer = await self._ask("PUT", "versioning", body)
        return self._settled(answer, "set the versioning of", State.ON if on else State.OFF)

    async def tmp_expiry(self) -> State:
        """Whether the bucket itself removes `tmp/` after seven days."""
        if not self._applicable:
            return State.NOT_APPLICABLE
        answer = await self._ask("GET", "lifecycle")
        if answer.code == "NoSuchLifecycleConfiguration":
            return State.OFF
        has = answer.status == 200 and lifecycle.expires(answer.body, self._tmp, TMP_DAYS)
        return self._settled(answer, "read the lifecycle of", State.ON if has else State.OFF)

    async def set_tmp_expiry(self) -> State:
        """Add our rule to the bucket's lifecycle; rules of others stay as they are.

        The rule also gives up multipart uploads that were never finished.
        """
        if not self._applicable:
            return State.NOT_APPLICABLE
        answer = await self._ask("GET", "lifecycle")
        present = ""
        if answer.code != "NoSuchLifecycleConfiguration":
            if self._settled(answer, "read the lifecycle of", State.ON) is not State.ON:
                return State.NOT_SUPPORTED
            present = answer.body
        prefix = f"{self._location.prefix}/" if self._location.prefix else ""
        body = lifecycle.with_rules(present, root=prefix, tmp=self._tmp, days=TMP_DAYS)
        answer = await self._ask("PUT", "lifecycle", body)
        return self._settled(answer, "set the lifecycle of", State.ON)

    @property
    def _applicable(self) -> bool:
        return self._location.backend is Backend.S3

    @property
    def _region(self) -> str:
        return self._config.region or "us-east-1"

    @property
    def _tmp(self) -> str:
        return "/".join(part for part in (self._location.prefix, TMP_PREFIX) if part)

    @property
    def _url(self) -> str:
        endpoint = self._config.endpoint or f"https://s3.{self._region}.amazonaws.com"
        return f"{endpoint.rstrip('/')}/{self._location.bucket}"

    def _settled(self, answer: _Answer, action: str, state: State) -> State:
        if answer.status in (200, 204):
            return state
        if answer.status == 501 or answer.code == "NotImplemented":
            return State.NOT_SUPPORTED
        what = answer.code or f"HTTP {answer.status}"
        raise Fault(
            f"cannot {action} the bucket {self._location.bucket!r}: {what}",
            hint="check the credentials in [objects] and what they may do with the bucket",
            retry_after_s=30.0,
            detail={"cause": what},
        )

    async def _ask(self, method: str, query: str, body: bytes = b"") -> _Answer:
        headers = self._headers(method, query, body)
        url = self._url + (f"?{query}=" if query else "")
        try:
            async with httpx2.AsyncClient(timeout=_TIMEOUT_S, follow_redirects=False) as client:
                response = await client.request(method, url, content=body, headers=headers)
        except httpx2.HTTPError as error:
            raise Fault(
                f"cannot reach the bucket {self._location.bucket!r}: {type(error).__name__}",
                hint="check endpoint in [objects] and the network",
                retry_after_s=5.0,
            ) from error
        return _Answer(response.status_code, response.text[:_MAX_ANSWER])

    def _headers(self, method: str, query: str, body: bytes) -> dict[str, str]:
        if not self._config.access_key:
            raise Fault(
                "the bucket's settings can be changed only with a configured access key",
                hint="set access_key and secret_key in [objects], or change the bucket by hand",
                retry_after_s=60.0,
            )
        extra = {"content-type": "application/xml"} if body else {}
        if body:
            digest = hashlib.md5(body, usedforsecurity=False).digest()
            extra["content-md5"] = base64.b64encode(digest).decode()
        credential = Credential(self._config.access_key, self._config.secret_key, self._region)
        parts = urlsplit(self._url)
        request = Request(
            method=method,
            host=parts.netloc,
            path=parts.path,
            query={query: ""} if query else {},
            headers=extra,
            body=body,
        )
        return signed_headers(credential, request, now=self._clock())


def _versioning(body: str) -> State:
    return State.ON if "<Status>Enabled</Status>" in body else State.OFF


def _location_document(region: str) -> bytes:
    if region == "us-east-1":
        return b""  # the one region that must not be named
    return _document(
        "CreateBucketConfiguration", f"<LocationConstraint>{region}</LocationConstraint>"
    )


def _document(root: str, content: str) -> bytes:
    return f'<{root} xmlns="{lifecycle.NAMESPACE}">{content}</{root}>'.encode()
