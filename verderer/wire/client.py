"""The two clients of the control plane: people's commands (`ApiClient`) and agents."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncGenerator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Self, TypeVar
from urllib.parse import urlencode

import msgspec

from verderer.core.errors import Fault, TooMany
from verderer.wire.agent import (
    GrantRequest,
    GrantResponse,
    Hello,
    Report,
    ReportAck,
    SyncRequest,
    SyncResponse,
    Welcome,
)
from verderer.wire.carry import CarryRequest, CarryTicket
from verderer.wire.transport import Answer, Ask, Transport

T = TypeVar("T")

QueryValue = str | int | Sequence[str] | None
"""A sequence is sent as one member for each of its values."""

_IDEMPOTENT = frozenset({"GET", "HEAD", "PUT", "DELETE", "OPTIONS"})
_JSON = "application/json"
_MSGPACK = "application/msgpack"
_MIB = 1024 * 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class Retries:
    """How a request that may be sent twice is tried again."""

    attempts: int = 4
    first_s: float = 0.2
    longest_s: float = 5.0

    def wait_s(self, attempt: int, asked_s: float, chance: float) -> float:
        """How long to wait after try number `attempt` (from 1); `chance` is 0 to 1."""
        backoff = min(self.longest_s, self.first_s * 2.0 ** (attempt - 1))
        return max(min(asked_s, self.longest_s), backoff * (0.5 + chance / 2))


class ApiClient:
    """JSON over HTTP for the user API.

    Every method raises `core.errors.Refusal` (with its `problems` where the server lists some)
    for a 4xx and `core.errors.Fault` when the server does not answer or is broken. A request that
    may be sent twice (GET, PUT, DELETE, or any with an idempotency key) is tried again.
    """

    def __init__(
        self,
        server_url: str,
        *,
        token: str = "",
        cookies: Mapping[str, str] | None = None,
        ca_file: str | None = None,
        timeout_s: float = 30.0,
        retries: Retries | None = None,
    ) -> None:
        self.server_url = server_url.rstrip("/")
        self._transport = Transport(self.server_url, ca_file=ca_file)
        self._timeout_s = timeout_s
        self._retries = retries or Retries()
        self._headers = {"accept": _JSON, "user-agent": "verderer"}
        if token:
            self._headers["authorization"] = f"Bearer {token}"
        if cookies:
            self._headers["cookie"] = "; ".join(f"{k}={v}" for k, v in cookies.items())

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()

    async def aclose(self) -> None:
        await self._transport.aclose()

    async def get(self, path: str, into: type[T], **query: QueryValue) -> T:
        """Read one document; query members that are None are left out."""
        return self._decode(await self.exchange("GET", path, query=query), into)

    async def post(self, path: str, body: object, into: type[T], *, idempotency_key: str = "") -> T:
        """Send a document; with an `idempotency_key` it is done once, however often it is sent."""
        answer = await self.exchange("POST", path, body=body, idempotency_key=idempotency_key)
        return self._decode(answer, into)

    async def put(self, path: str, body: object, into: type[T]) -> T:
        """Replace a document."""
        return self._decode(await self.exchange("PUT", path, body=body), into)

    async def patch(self, path: str, body: object, into: type[T]) -> T:
        """Change members of a document; the others stay as they are."""
        return self._decode(await self.exchange("PATCH", path, body=body), into)

    async def delete(self, path: str) -> None:
        """Remove what `path` names."""
        await self.exchange("DELETE", path)

    async def exchange(
        self,
        method: str,
        path: str,
        *,
        body: object = None,
        content_type: str = "",
        query: Mapping[str, QueryValue] | None = None,
        idempotency_key: str = "",
    ) -> Answer:
        """One request and its whole answer, for what the short methods do not cover.

        A `body` of bytes is sent as it is under `content_type`; anything else becomes JSON.
        """
        ask = self._ask(method, path, query, body, content_type)
        if idempotency_key:
            ask = replace(ask, headers={**ask.headers, "idempotency-key": idempotency_key})
        if method not in _IDEMPOTENT and not idempotency_key:
            return await self._transport.send(ask)
        return await self._send_with_retries(ask)

    async def stream(
        self,
        path: str,
        *,
        accept: str = "application/octet-stream",
        quiet_s: float = 60.0,
        query: Mapping[str, QueryValue] | None = None,
    ) -> AsyncGenerator[bytes, None]:
        """Body parts as they come, for logs and events; `quiet_s` bounds the wait for each.

        Whoever stops before the end closes it: `async with contextlib.aclosing(…)`.
        """
        ask = self._ask("GET", path, query, None, "")
        ask = replace(ask, headers={**ask.headers, "accept": accept}, timeout_s=quiet_s)
        async with self._transport.open(ask) as response:
            async for part in response.aiter_bytes():
                yield part

    def _ask(
        self,
        method: str,
        path: str,
        query: Mapping[str, QueryValue] | None,
        body: object,
        content_type: str,
    ) -> Ask:
        pairs = {name: value for name, value in (query or {}).items() if value is not None}
        url = self.server_url + path + (f"?{urlencode(pairs, doseq=True)}" if pairs else "")
        headers = dict(self._headers)
        content: bytes | None = None
        if isinstance(body, bytes):
            content, headers["content-type"] = body, content_type or "application/octet-stream"
        elif body is not None:
            content, headers["content-type"] = msgspec.json.encode(body), _JSON
        return Ask(
            method=method,
            url=url,
            headers=headers,
            content=content,
            timeout_s=self._timeout_s,
            max_bytes=64 * _MIB,
        )

    async def _send_with_retries(self, ask: Ask) -> Answer:
        attempt = 1
        while True:
            try:
                return await self._transport.send(ask)
            except (Fault, TooMany) as error:
                if attempt >= self._retries.attempts:
                    raise
                wait = self._retries.wait_s(attempt, error.retry_after_s, random.random())
            await asyncio.sleep(wait)
            attempt += 1

    def _decode(self, answer: Answer, into: type[T]) -> T:
        if not answer.body and into is type(None):
            return None
        try:
            return msgspec.json.decode(answer.body, type=into)
        except msgspec.DecodeError as error:
            raise Fault(
                f"the server's answer is not what was expected: {error}",
                hint="client and server may be of very different versions",
            ) from error


class AgentClient:
    """The four requests of protocol 1, in MessagePack. Never tries again: the loops do.

    Each method raises `core.errors.Conflict` with code `stale_epoch` when another agent has taken
    over, `NotAuthenticated` when the credential is unknown, `Fault` when trying later may help.
    """

    def __init__(
        self,
        server_url: str,
        credential: str,
        *,
        ca_file: str | None = None,
        timeout_s: float = 30.0,
    ) -> None:
        self.server_url = server_url.rstrip("/")
        self._transport = Transport(self.server_url, ca_file=ca_file, connections=16)
        self._timeout_s = timeout_s
        self._encoder = msgspec.msgpack.Encoder()
        self._headers = {
            "authorization": f"Bearer {credential}",
            "accept": _MSGPACK,
            "content-type": _MSGPACK,
            "user-agent": "verderer-agent",
        }

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()

    async def aclose(self) -> None:
        await self._transport.aclose()

    def present(self, credential: str) -> None:
        """Show this credential from the next request on."""
        self._headers = {**self._headers, "authorization": f"Bearer {credential}"}

    async def hello(self, hello: Hello) -> Welcome:
        """Open a session: whoever spoke for this cluster before is refused from now on."""
        return await self._call("hello", hello, Welcome, self._timeout_s, _MIB)

    async def sync(self, request: SyncRequest) -> SyncResponse:
        """Wait up to `request.wait_s` seconds for orders above `request.since`."""
        timeout_s = self._timeout_s + request.wait_s
        return await self._call("sync", request, SyncResponse, timeout_s, 64 * _MIB)

    async def report(self, report: Report) -> ReportAck:
        """Carry facts up; may be sent twice."""
        return await self._call("report", report, ReportAck, self._timeout_s, 4 * _MIB)

    async def grants(self, request: GrantRequest) -> GrantResponse:
        """Short-lived addresses of objects."""
        return await self._call("grants", request, GrantResponse, self._timeout_s, 64 * _MIB)

    async def carry(self, request: CarryRequest) -> CarryTicket:
        """A ticket for the carrier of one step."""
        return await self._call("carry", request, CarryTicket, self._timeout_s, _MIB)

    async def _call(
        self, verb: str, document: msgspec.Struct, into: type[T], timeout_s: float, limit: int
    ) -> T:
        answer = await self._transport.send(
            Ask(
                method="POST",
                url=f"{self.server_url}/api/v1/agent/{verb}",
                headers=self._headers,
                content=self._encoder.encode(document),
                timeout_s=timeout_s,
                max_bytes=limit,
            )
        )
        try:
            if _JSON in answer.headers.get("content-type", ""):
                return msgspec.json.decode(answer.body, type=into)
            return msgspec.msgpack.decode(answer.body, type=into)
        except msgspec.DecodeError as error:
            raise Fault(
                f"the answer to {verb} cannot be read: {error}",
                hint="agent and server may be of very different versions",
            ) from error
