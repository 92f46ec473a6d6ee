"""How a tracking endpoint is mounted: its addresses, who may use it, what it is given."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any, Literal, TypeVar, cast

import msgspec
from litestar import Request, Response, asgi
from litestar.handlers import ASGIRouteHandler, HTTPRouteHandler
from litestar.types import Receive, Scope, Send

from verderer.api.auth import actor_of, context_of
from verderer.api.mlflow.bodies import decode, read_body
from verderer.api.mlflow.errors import HANDLERS, no_endpoint
from verderer.core.access import Action
from verderer.objects.store import ObjectStore
from verderer.usecases.context import Context
from verderer.usecases.tracking.caller import Caller

Method = Literal["GET", "POST", "PUT", "PATCH", "DELETE"]
JSON = "application/json"
MAX_BODY = 8 * 1024 * 1024
"""Bytes; data sets' profiles may be larger, and say so."""

# Literal segments in their place would shadow a project of the same name.
_PREFIXES = ("/mlflow/{api:str}/{version:str}", "/mlflow/{project:str}/{api:str}/{version:str}")
_APIS = frozenset({"api", "ajax-api"})
_VERSIONS = frozenset({"2.0", "3.0"})

In = TypeVar("In")


@dataclass(frozen=True, slots=True)
class Call:
    """One request, as an endpoint sees it."""

    request: Request[Any, Any, Any]
    ctx: Context
    caller: Caller

    @property
    def objects(self) -> ObjectStore:
        return cast("ObjectStore", self.request.app.state.objects)

    def part(self, name: str) -> str:
        """A named segment of the address."""
        return str(self.request.path_params[name])

    def asked(self, name: str) -> str | None:
        """A value of the address's query, or None."""
        value = self.request.query_params.get(name)
        return None if value is None else str(value)

    def all_asked(self, name: str) -> list[str]:
        """All values of one name in the query."""
        return [str(value) for value in self.request.query_params.getall(name, [])]

    async def body(self, document: type[In]) -> In:
        """The body, read as `document`; raises `Invalid` when it does not fit."""
        return decode(await self.request.body(), document)


Endpoint = Callable[[Call], Awaitable[object]]
"""Returns what becomes the JSON body, or a response of its own."""


def paths(tail: str) -> list[str]:
    """The addresses of an endpoint: for everything that the caller sees, and for one project."""
    return [prefix + tail for prefix in _PREFIXES]


def endpoint(
    method: Method, tail: str, action: Action, handle: Endpoint, *, max_body: int | None = MAX_BODY
) -> HTTPRouteHandler:
    """Mount an endpoint at `{prefix}{tail}`; `max_body` None: the handler reads it as it comes."""

    return _mounted(paths(tail), method, action, handle, max_body)


def hot_endpoints(
    tail: str, document: type[In], handle: Callable[[Context, Caller, In], Awaitable[None]]
) -> tuple[ASGIRouteHandler, HTTPRouteHandler]:
    """Mount a POST that writes much and answers `{}`, with nothing between it and the server.

    Within one project it is mounted as the others are: the framework finds the parameters of an
    address for those alone.
    """

    async def serve(scope: Scope, receive: Receive, send: Send) -> None:
        if scope.get("method") != "POST":
            raise no_endpoint()
        body = decode(await read_body(receive, MAX_BODY), document)
        await handle(context_of(scope), Caller(actor_of(scope)), body)
        headers = [(b"content-type", b"application/json"), (b"content-length", b"2")]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        await send({"type": "http.response.body", "body": b"{}", "more_body": False})

    async def within_project(call: Call) -> object:
        await handle(call.ctx, call.caller, await call.body(document))
        return {}

    hot = asgi(
        [
            f"/mlflow/{api}/{version}{tail}"
            for api in sorted(_APIS)
            for version in sorted(_VERSIONS)
        ],
        opt={"action": Action.TRACKING_WRITE},
        exception_handlers=HANDLERS,
        copy_scope=False,
        name=f"mlflow POST {tail}",
    )(serve)
    within = _mounted(
        [_PREFIXES[1] + tail], "POST", Action.TRACKING_WRITE, within_project, MAX_BODY
    )
    return hot, within


def _mounted(
    addresses: list[str], method: Method, action: Action, handle: Endpoint, max_body: int | None
) -> HTTPRouteHandler:
    async def serve(request: Request[Any, Any, Any]) -> Response[Any]:
        caller = caller_of(request.scope)
        answer = await handle(Call(request, context_of(request.scope), caller))
        return answer if isinstance(answer, Response) else json_response(answer)

    return HTTPRouteHandler(
        addresses,
        http_method=method,
        opt={"action": action},
        status_code=200,
        include_in_schema=False,
        exception_handlers=HANDLERS,
        request_max_body_size=max_body,
        name=f"mlflow {method} {addresses[-1]}",
    )(serve)


def caller_of(scope: Scope) -> Caller:
    """Who asks, within the project that the address names.

    Raises:
        NotFound: the address has the form of an endpoint and is none.
    """
    parts = scope["path_params"]
    if parts["api"] not in _APIS or parts["version"] not in _VERSIONS:
        raise no_endpoint()
    project = parts.get("project")
    return Caller(actor_of(scope), None if project is None else str(project))


def json_response(answer: object) -> Response[bytes]:
    """A JSON body with status 200."""
    return Response(msgspec.json.encode(answer), status_code=200, media_type=JSON)
