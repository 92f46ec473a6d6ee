"""One HTTP exchange: bounded in time and in bytes, foreign errors translated at this edge."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Self
from urllib.parse import urlsplit

import httpx2

from verderer.core.errors import Fault, Invalid, TooLarge, VerdererError
from verderer.wire.problems import error_of

CONNECT_TIMEOUT_S = 10.0
KEEP_ALIVE_S = 60.0
MAX_PROBLEM_BYTES = 64 * 1024

_LOOPBACK = frozenset({"localhost", "127.0.0.1", "::1"})

Content = bytes | AsyncIterator[bytes] | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """A whole answer with a status in 2xx."""

    status: int
    headers: Mapping[str, str]
    body: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class Ask:
    """A request before it is sent."""

    method: str
    url: str
    headers: Mapping[str, str] = field(default_factory=dict)
    content: Content = None
    timeout_s: float = 30.0
    """For the whole exchange, however slowly the bytes come."""
    max_bytes: int = 4 * 1024 * 1024
    """Of the answer's body; more is refused while it comes."""


class Transport:
    """A pool of connections with one trust store.

    Redirects are not followed: an answer from elsewhere than the configured address is an error.
    """

    def __init__(
        self, base_url: str, *, ca_file: str | None = None, connections: int = 100
    ) -> None:
        parts = urlsplit(base_url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise Invalid(
                f"not a server address: {base_url!r}",
                hint="write it like https://verderer.example.com",
            )
        self._client = httpx2.AsyncClient(
            verify=_trust(ca_file) if parts.scheme == "https" else True,
            # A proxy from the environment must not stand between us and this very machine.
            trust_env=parts.hostname not in _LOOPBACK,
            limits=httpx2.Limits(
                max_connections=connections,
                max_keepalive_connections=connections,
                keepalive_expiry=KEEP_ALIVE_S,
            ),
        )

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()

    async def aclose(self) -> None:
        await self._client.aclose()

    async def send(self, ask: Ask) -> Answer:
        """Send and read the whole answer.

        Raises:
            Refusal: the answer was a 4xx, as the class that its status names.
            TooLarge: the answer is longer than `ask.max_bytes`.
            Fault: no answer in time, or a 5xx.
        """
        try:
            async with asyncio.timeout(ask.timeout_s), self.open(ask) as response:
                body = await _read(response, ask.max_bytes)
                return Answer(
                    status=response.status_code, headers=dict(response.headers), body=body
                )
        except TimeoutError as error:
            raise Fault(f"no answer from {_host(ask.url)} in {ask.timeout_s:g} s") from error

    @asynccontextmanager
    async def open(self, ask: Ask) -> AsyncIterator[httpx2.Response]:
        """Send and hand out the answer with its body unread; `timeout_s` bounds each wait.

        Raises: as `send`.
        """
        headers = {"accept-encoding": "identity", **ask.headers}
        timeout = httpx2.Timeout(ask.timeout_s, connect=min(CONNECT_TIMEOUT_S, ask.timeout_s))
        try:
            async with self._client.stream(
                ask.method, ask.url, content=ask.content, headers=headers, timeout=timeout
            ) as response:
                if not response.is_success:
                    raise await _problem(response)
                yield response
        except (httpx2.TimeoutException, TimeoutError) as error:
            raise Fault(f"no answer from {_host(ask.url)} in {ask.timeout_s:g} s") from error
        except httpx2.InvalidURL as error:
            raise Invalid(f"not an address: {ask.url[:200]!r}") from error
        except (httpx2.TransportError, httpx2.StreamError, httpx2.DecodingError) as error:
            raise _fault(ask.url, error) from error


async def _read(response: httpx2.Response, limit: int) -> bytes:
    declared = response.headers.get("content-length", "0")
    if declared.isdecimal() and int(declared) > limit:
        raise TooLarge(f"the answer has {declared} bytes; the limit is {limit}")
    body = bytearray()
    async for part in response.aiter_bytes():
        body += part
        if len(body) > limit:
            raise TooLarge(f"the answer is longer than {limit} bytes")
    return bytes(body)


async def _problem(response: httpx2.Response) -> VerdererError:
    try:
        body = await _read(response, MAX_PROBLEM_BYTES)
    except TooLarge:
        body = b""
    return error_of(
        response.status_code,
        body,
        content_type=response.headers.get("content-type", ""),
        retry_after=response.headers.get("retry-after", ""),
    )


def _fault(url: str, error: Exception) -> Fault:
    text = str(error) or type(error).__name__
    hint = "check the server's address, the network between, and that the server runs"
    if "CERTIFICATE" in text.upper():
        hint = _of_certificate(text.lower())
    return Fault(
        f"{_host(url)} cannot be reached: {text[:300]}", hint=hint, detail={"cause": text[:300]}
    )


def _of_certificate(text: str) -> str:
    """What helps against this verdict of OpenSSL on the server's certificate."""
    if "mismatch" in text:
        return "its certificate is for another name: use that name in the server's address"
    if "expired" in text or "not yet valid" in text:
        return "renew its certificate, or set the clock of this machine: one of them is wrong"
    return "give the file of the authority that signed the server's certificate (ca_file)"


def _host(url: str) -> str:
    """The part of an address that may be shown: presigned queries are secrets."""
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.hostname}" + (f":{parts.port}" if parts.port else "")


def _trust(ca_file: str | None) -> ssl.SSLContext:
    if ca_file is not None and not Path(ca_file).is_file():
        raise Invalid(f"no such file: {ca_file}", hint="ca_file is a PEM file of certificates")
    try:
        return ssl.create_default_context(cafile=ca_file)
    except ssl.SSLError as error:
        raise Invalid(f"{ca_file} holds no certificates in PEM", hint=str(error)) from error
