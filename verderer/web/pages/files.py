"""Style sheets and scripts, and the page for addresses where nothing is."""

from __future__ import annotations

from litestar import Response, get
from litestar.params import FromPath

from verderer.core.errors import NotFound
from verderer.web.gate import anybody
from verderer.web.parts import PartsArg
from verderer.web.visitor import HttpRequest

_WHY = "the same files for everybody, needed to log in"
_YEAR = "public, max-age=31536000, immutable"
_SHORT = "public, max-age=300"
_BELOW = [
    "/runs/{run:str}/{rest:str}",
    "/clusters/{cluster_id:str}/{rest:str}",
    "/projects/{name:str}/{rest:str}",
    "/settings/{rest:str}",
]


@get("/assets/{name:path}", opt={"public": _WHY})
async def asset(request: HttpRequest, parts: PartsArg, name: FromPath[str]) -> Response[bytes]:
    """A file; kept for ever by browsers that name its version."""
    found = parts.assets.get(str(name).lstrip("/"))
    if found is None:
        raise NotFound("there is no such file")
    known = request.query_params.get("v") == found.version
    headers = {"Cache-Control": _YEAR if known else _SHORT, "ETag": f'"{found.version}"'}
    if request.headers.get("if-none-match") == headers["ETag"]:
        return Response(b"", status_code=304, headers=headers)
    return Response(found.body, media_type=found.media_type, headers=headers)


@get("/favicon.ico", opt={"public": _WHY})
async def favicon(parts: PartsArg) -> Response[bytes]:
    """Browsers ask for it whatever the page says."""
    found = parts.assets.get("logo.svg")
    body = found.body if found else b""
    return Response(body, media_type="image/svg+xml", headers={"Cache-Control": _SHORT})


@get("/{path:path}", opt=anybody("says only that nothing is there"))
async def nothing(path: FromPath[str]) -> None:
    """Whatever no other page answers."""
    raise NotFound(f"nothing is at {path}")


@get(_BELOW, opt=anybody("says only that nothing is there"))
async def nothing_below() -> None:
    """The same, where another page's address goes on."""
    raise NotFound("nothing is at this address")


ROUTES = (asset, favicon, nothing, nothing_below)
