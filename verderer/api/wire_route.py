"""A hot route: one document in, one out, in MessagePack or JSON, with nothing in between."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

import msgspec
from litestar import asgi
from litestar.handlers import ASGIRouteHandler
from litestar.types import Receive, Scope, Send

from verderer.api.auth import actor_of
from verderer.core.access import Action
from verderer.core.errors import Invalid, NotFound, TooLarge
from verderer.core.model.actor import Actor

In = TypeVar("In")
Out = TypeVar("Out")

MSGPACK = b"application/msgpack"
JSON = b"application/json"


@dataclass(frozen=True, slots=True)
class _Format:
    name: bytes
    encode: Callable[[object], bytes]


_FORMATS = {
    MSGPACK: _Format(MSGPACK, msgspec.msgpack.Encoder().encode),
    JSON: _Format(JSON, msgspec.json.Encoder().encode),
}


class WireRoute(Generic[In, Out]):
    """Answers POST with what `handle(app state, actor, document)` returns."""

    def __init__(
        self,
        document: type[In],
        handle: Callable[[Any, Actor, In], Awaitable[Out]],
        *,
        limit: int,
        status: int = 200,
    ) -> None:
        self._handle = handle
        self._limit = limit
        self._status = status
        self._decoders: dict[bytes, Callable[[bytes], In]] = {
            MSGPACK: msgspec.msgpack.Decoder(document).decode,
            JSON: msgspec.json.Decoder(document).decode,
        }

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request; errors are raised and translated where all are."""
        if scope.get("method") != "POST":
            raise NotFound("this address takes POST alone", code="method_not_allowed")
        kind = _kind(scope)
        document = self._decode(kind, await _body(receive, self._limit))
        answer = await self._handle(scope["litestar_app"].state, actor_of(scope), document)
        body = _FORMATS[kind].encode(answer)
        headers = [(b"content-type", kind), (b"content-length", str(len(body)).encode())]
        await send({"type": "http.response.start", "status": self._status, "headers": headers})
        await send({"type": "http.response.body", "body": body, "more_body": False})

    def _decode(self, kind: bytes, body: bytes) -> In:
        try:
            return self._decoders[kind](body)
        except (msgspec.DecodeError, RecursionError) as e:
            raise Invalid(f"the document does not fit: {e}") from e


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
    route = WireRoute(document, handle, limit=limit, status=status)

    async def serve(scope: Scope, receive: Receive, send: Send) -> None:
        await route(scope, receive, send)

    return asgi(path, opt={"action": action}, name=path, copy_scope=False)(serve)


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
