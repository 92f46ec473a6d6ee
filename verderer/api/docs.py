"""The OpenAPI document and the page to browse it, from our own assets alone."""

from __future__ import annotations

import hashlib
import re
from base64 import b64encode
from collections.abc import Mapping, Sequence
from importlib.metadata import version
from typing import Any, cast

import msgspec
from litestar import Litestar, MediaType, Request, Response, Router, get
from litestar.enums import HttpMethod
from litestar.handlers import HTTPRouteHandler
from litestar.openapi import OpenAPIConfig
from litestar.openapi.plugins import OpenAPIRenderPlugin
from litestar.openapi.spec import Components, SecurityScheme
from litestar.types import Method

from verderer.api.errors import MEDIA_TYPE, ProblemDetails
from verderer.api.gate import all_handlers

_WHY = "the interface is the same everywhere and says nothing about this instance"
_DOCUMENT = "/api/v1/openapi.json"
_ABOUT = """Everything that the console and the command line do, for programs.

Send a token as `Authorization: Bearer …`; cookies are never looked at. Errors are problem details
(RFC 9457) with a stable `code`. Lists are paged by key: pass `next` as `after`."""
_START = f"""window.onload = () => SwaggerUIBundle({{
  url: "{_DOCUMENT}", dom_id: "#api", deepLinking: true, validatorUrl: null,
  persistAuthorization: false, tryItOutEnabled: false, defaultModelsExpandDepth: 0,
}});"""
_PAGE = f"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>Verderer API</title>
<link rel="stylesheet" href="/assets/vendor/swagger-ui.css">
</head>
<body>
<noscript>This page needs JavaScript; see the <a href="{_DOCUMENT}">document itself</a>.</noscript>
<main id="api"></main>
<script src="/assets/vendor/swagger-ui-bundle.js"></script>
<script>{_START}</script>
</body>
</html>
"""
_HASH = b64encode(hashlib.sha256(_START.encode()).digest()).decode()
_PAGE_POLICY = (
    f"default-src 'none'; script-src 'self' 'sha256-{_HASH}'; style-src 'self' 'unsafe-inline'; "
    "img-src 'self' data:; connect-src 'self'; frame-ancestors 'none'; base-uri 'none'; "
    "form-action 'none'"
)
# The framework's name of `Page[ProjectOut]`.
_GENERIC = re.compile(rb"Page_[A-Za-z_.]*\.([A-Za-z]+)_")
_PROBLEM = {
    "description": "A refusal or a failure, as problem details.",
    "content": {MEDIA_TYPE: {"schema": {"$ref": "#/components/schemas/ProblemDetails"}}},
}


class _Page(OpenAPIRenderPlugin):
    def __init__(self) -> None:
        super().__init__(path="/")

    def render(self, request: Request[Any, Any, Any], openapi_schema: dict[str, Any]) -> bytes:
        """Give the page; it fetches the document by itself."""
        del request, openapi_schema
        return _PAGE.encode()


def openapi_config() -> OpenAPIConfig:
    """How the framework draws the document up."""
    return OpenAPIConfig(
        title="Verderer",
        version=version("verderer"),
        description=_ABOUT,
        use_handler_docstrings=True,
        security=[{"token": []}],
        components=Components(
            security_schemes={
                "token": SecurityScheme(
                    type="http", scheme="bearer", description="A token: `vrd_u_…` of a person."
                )
            }
        ),
        operation_id_creator=_operation_id,
        render_plugins=[_Page()],
        openapi_router=Router(
            "/api/docs",
            route_handlers=[],
            opt={"public": _WHY},
            include_in_schema=False,
            response_headers={"Content-Security-Policy": _PAGE_POLICY},
        ),
    )


@get("/openapi.json", opt={"public": _WHY}, include_in_schema=False, media_type=MediaType.JSON)
async def openapi_document(request: Request[Any, Any, Any]) -> Response[bytes]:
    """The document, made once."""
    state = request.app.state
    if "openapi" not in state:
        state.openapi = msgspec.json.encode(document(request.app))
    return Response(
        state.openapi,
        media_type="application/json",
        headers={"Cache-Control": "public, max-age=300"},
    )


def _operation_id(handler: HTTPRouteHandler, method: Method, parts: Sequence[Any]) -> str:
    """What generated clients call it: `get_projects_name_members`."""
    del handler
    words = [str(getattr(part, "name", part)) for part in parts]
    return "_".join(
        [HttpMethod(method).value.lower(), *(w for w in words if w not in ("api", "v1"))]
    )


def document(app: Litestar) -> dict[str, Any]:
    """OpenAPI 3.1 of the routes below `/api/` and the health checks.

    A plain ASGI handler, which the framework cannot read, brings its own description:
    `opt={"openapi": {"post": {…an Operation…}}}`.
    """
    drawn = app.openapi_schema.to_schema()
    paths = {p: dict(item) for p, item in drawn["paths"].items() if _belongs(p)}
    opts: dict[str, Mapping[str, Any]] = {}
    for path, handler in all_handlers(app):
        for method in getattr(handler, "http_methods", ()):
            opts[f"{method} {_plain(path)}"] = handler.opt
        if described := handler.opt.get("openapi"):
            paths.setdefault(_plain(path), {}).update(described)
            opts |= {f"{m.upper()} {_plain(path)}": handler.opt for m in described}
    for path, item in paths.items():
        for method, operation in item.items():
            _finish(operation, opts.get(f"{method.upper()} {path}", {}))
    _, schemas = msgspec.json.schema_components(
        [ProblemDetails], ref_template="#/components/schemas/{name}"
    )
    drawn["components"]["schemas"] |= schemas
    whole = msgspec.json.encode(drawn | {"paths": dict(sorted(paths.items()))})
    return cast("dict[str, Any]", msgspec.json.decode(_GENERIC.sub(rb"\1Page", whole)))


def _finish(operation: dict[str, Any], opt: Mapping[str, Any]) -> None:
    """Say what every operation has in common: how it fails, and who may call it."""
    first, _, rest = operation.get("description", "").partition("\n")
    operation["summary"], operation["description"] = first, rest.strip()
    responses = operation.setdefault("responses", {})
    responses.pop("400", None)
    responses["default"] = _PROBLEM
    if "public" in opt:
        operation["security"] = []
    elif action := opt.get("action"):
        operation["x-action"] = str(action)


def _belongs(path: str) -> bool:
    return path.startswith("/api/") or path in ("/healthz", "/readyz", "/problems/{code}")


def _plain(path: str) -> str:
    """`/projects/{name:str}` as OpenAPI writes it."""
    return "/".join(
        "{" + part[1:-1].partition(":")[0] + "}" if part.startswith("{") else part
        for part in path.split("/")
    )
