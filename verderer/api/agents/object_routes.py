"""`/objects/…`: where the granted addresses of a local object store lead."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator
from typing import Any
from urllib.parse import parse_qsl

from litestar import asgi
from litestar.types import Receive, Scope, Send

from verderer.core.errors import Invalid, NotFound
from verderer.objects.grants import LocalGrants
from verderer.objects.serving import download, receive

MAX_OBJECT = 1 << 40
"""Bytes of one upload."""


@asgi(
    "/objects",
    is_mount=True,
    opt={"public": "the address itself is signed and expires"},
    copy_scope=True,
)
async def objects_route(scope: Scope, receive: Receive, send: Send) -> None:
    """GET, HEAD or PUT one object by an address that was granted."""
    state = scope["litestar_app"].state
    grants = state.grants
    if not isinstance(grants, LocalGrants):
        raise NotFound("objects are not served here")
    key = scope["path"].removeprefix("/objects").strip("/")
    method = str(scope.get("method"))
    query = dict(parse_qsl(scope["query_string"].decode("latin-1")))
    grants.verify(method, key, query, time.time())
    if method == "PUT":
        await _put(state.objects, key, scope, receive, send)
    else:
        await _get(state.objects, key, scope, send, head=method == "HEAD")


async def _put(objects: Any, key: str, scope: Scope, receive_: Receive, send: Send) -> None:
    declared = _header(scope, b"content-length")
    if declared and not declared.isdigit():
        raise Invalid("Content-Length must be a number")
    stored = await receive(
        objects,
        key,
        _body(receive_),
        limit=MAX_OBJECT,
        declared=int(declared) if declared else None,
    )
    headers = [(b"etag", (stored.etag or "").encode()), (b"content-length", b"0")]
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    await send({"type": "http.response.body", "body": b"", "more_body": False})


async def _get(objects: Any, key: str, scope: Scope, send: Send, *, head: bool) -> None:
    found = await download(
        objects,
        key,
        range_header=_header(scope, b"range"),
        if_none_match=_header(scope, b"if-none-match"),
        head=head,
    )
    headers = [(name.encode(), value.encode()) for name, value in found.headers.items()]
    # What a step stored is never shown as a page of ours.
    headers.append((b"content-disposition", b"attachment"))
    await send({"type": "http.response.start", "status": found.status, "headers": headers})
    if found.body is not None:
        async for part in found.body:
            await send({"type": "http.response.body", "body": part, "more_body": True})
    await send({"type": "http.response.body", "body": b"", "more_body": False})


async def _body(receive_: Receive) -> AsyncIterator[bytes]:
    while True:
        message = await receive_()
        if message["type"] != "http.request":
            raise Invalid("the connection ended within the body")
        if message["body"]:
            yield message["body"]
        if not message["more_body"]:
            return


def _header(scope: Scope, name: bytes) -> str:
    for key, value in scope["headers"]:
        if key == name:
            return value.decode("latin-1")
    return ""
