"""A hot route: one document in, one out, in MessagePack or JSON, with nothing in between."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

import msgspec
from litestar import asgi
from litestar.handlers import ASGIRouteHandler
from litestar.types import ASGIApp, HTTPRequestEvent, Middleware, Receive, Scope, Send

from verderer.api.auth import actor_of
from verderer.core.access import Action
from verderer.core.errors import Invalid, NotFound, TooLarge
from verderer.core.model.actor import Actor

In = TypeVar("In")
Out = TypeVar("Out")

MSGPACK = b"application/msgpack"
JSON = b"application/json"
_UNFIT = (msgspec.DecodeError, RecursionError)


@dataclass(frozen=True, slots=True)
class _Format:
    name: bytes
    encode: Callable[[object], bytes]


_FORMATS = {
    MSGPACK: _Format(MSGPACK, msgspec.msgpack.Encoder().encode),
    JSON: _Format(JSON, msgspec.json.Encoder().encode),
}


@dataclass(frozen=True, slots=True)
class Reply(Generic[Out]):
    """An answer with what stands above it."""

    document: Out
    status: int
    headers: tuple[tuple[bytes, bytes], ...] = ()


class WireRoute(ABC, Generic[In, Out]):
    """Answers POST with a document."""

    def __init__(self, document: type[In], *, limit: int) -> None:
        """`limit` is the most bytes of a body."""
        self._limit = limit
        self._decoders: dict[bytes, Callable[[bytes], In]] = {
            MSGPACK: msgspec.msgpack.Decoder(document).decode,
            JSON: msgspec.json.Decoder(document).decode,
        }

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request; errors are raised and translated where all are."""
        if scope.get("method") != "POST":
            raise NotFound("this address takes POST alone", code="method_not_allowed")
        kind = _kind(scope)
        body = await self.read(receive)
        try:
            document = self.decode(kind, body)
        except _UNFIT as e:
            raise Invalid(f"the document does not fit: {e}") from e
        await self.answer(scope, kind, document, send)

    async def read(self, receive: Receive) -> bytes:
        """The whole body.

        Raises:
            TooLarge: it is longer than the limit.
        """
        return await _body(receive, self._limit)

    def decode(self, kind: bytes, body: bytes) -> In:
        """Raises `msgspec.DecodeError` or `RecursionError` when the document does not fit."""
        return self._decoders[kind](body)

    async def answer(self, scope: Scope, kind: bytes, document: In, send: Send) -> None:
        """Reply in the format `kind`."""
        reply = await self.reply(scope, document)
        body = _FORMATS[kind].encode(reply.document)
        length = str(len(body)).encode()
        headers = [(b"content-type", kind), (b"content-length", length), *reply.headers]
        await send({"type": "http.response.start", "status": reply.status, "headers": headers})
        await send({"type": "http.response.body", "body": body, "more_body": False})

    @abstractmethod
    async def reply(self, scope: Scope, document: In) -> Reply[Out]:
        """What is answered."""


class _Handled(WireRoute[In, Out]):
    """Answers with what `handle(app state, actor, document)` returns."""

    def __init__(
        self,
        document: type[In],
        handle: Callable[[Any, Actor, In], Awaitable[Out]],
        *,
        limit: int,
        status: int,
    ) -> None:
        super().__init__(document, limit=limit)
        self._handle = handle
        self._status = status

    async def reply(self, scope: Scope, document: In) -> Reply[Out]:
        answer = await self._handle(scope["litestar_app"].state, actor_of(scope), document)
        return Reply(answer, self._status)


def wire_route(
    path: str,
    document: type[In],
    handle: Callable[[Any, Actor, In], Awaitable[Out]],
    *,
    action: Action,
    limit: int,
    status: int = 200,
) -> ASGIRouteHandler:
    """Mount a hot route; `limit` is the most bytes of a body."""
    return mounted(path, _Handled(document, handle, limit=limit, status=status), action=action)


def mounted(path: str, route: WireRoute[Any, Any], *, action: Action) -> ASGIRouteHandler:
    """Mount a hot route that looks at more than its document."""

    async def serve(scope: Scope, receive: Receive, send: Send) -> None:
        await route(scope, receive, send)

    return asgi(path, opt={"action": action}, name=path, copy_scope=False)(serve)


def answered_by(route: WireRoute[Any, Any]) -> Middleware:
    """Middleware of one documented handler: `route` answers in its place.

    The handler says in the API's description what goes in and out, and refuses what does not fit
    in words that name the field. For all that fits, the framework's work, as much again as all
    else of a small request, is left out.
    """

    def around(app: ASGIApp) -> ASGIApp:
        async def serve(scope: Scope, receive: Receive, send: Send) -> None:
            body = await route.read(receive)
            try:
                kind = _kind(scope)
                document = route.decode(kind, body)
            except (Invalid, *_UNFIT):
                await app(scope, _again(body), send)
            else:
                await route.answer(scope, kind, document, send)

        return serve

    return around


def _again(body: bytes) -> Receive:
    """Gives a body that was read already."""

    async def receive() -> HTTPRequestEvent:
        return {"type": "http.request", "body": body, "more_body": False}

    return receive


def _kind(scope: Scope) -> bytes:
    for name, value in scope["headers"]:
        if name == b"content-type":
            kind = value.split(b";", 1)[0].strip().lower()
            if kind in _FORMATS:
                return bytes(kind)
            raise Invalid("the body must be application/json or application/msgpack")
    return JSON


async def _body(receive: Receive, limit: int) -> bytes:
    parts: list[bytes] = []
    size = 0
    while True:
        message = await receive()
        if message["type"] != "http.request":
            raise Invalid("the connection ended within the body")
        part = message["body"]
        size += len(part)
        if size > limit:
            raise TooLarge(f"the body has more than {limit} bytes")
        parts.append(part)
        if not message["more_body"]:
            return parts[0] if len(parts) == 1 else b"".join(parts)
