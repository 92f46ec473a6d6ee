"""/healthz, /readyz and /problems: for whoever watches the process or met an error."""

from __future__ import annotations

import msgspec
from litestar import Response, get
from litestar.params import FromPath

from verderer.api.auth import ContextArg
from verderer.api.codes import CODES
from verderer.core.errors import NotFound
from verderer.usecases.readiness import OK, check_readiness

_WATCHED = {"public": "who watches the process has no credential; nothing of the content is said"}


class Alive(msgspec.Struct, frozen=True):
    """The process answers."""

    status: str = "ok"


class Ready(msgspec.Struct, frozen=True):
    """`parts` says of each what is missing, or `ok`."""

    ready: bool
    parts: dict[str, str]


class CodeOut(msgspec.Struct, frozen=True):
    """What a code of problem details means."""

    code: str
    status: int
    title: str
    meaning: str


@get("/healthz", opt=_WATCHED, tags=["health"])
async def healthz() -> Alive:
    """The process is up. Restart it when this does not answer."""
    return Alive()


@get("/readyz", opt=_WATCHED, tags=["health"])
async def readyz(context: ContextArg) -> Response[Ready]:
    """The process can serve: 503 and the part that keeps it from that otherwise."""
    parts = dict(await check_readiness(context))
    ready = all(state == OK for state in parts.values())
    return Response(Ready(ready, parts), status_code=200 if ready else 503)


@get("/problems/{code:str}", opt={"public": "documentation"}, tags=["health"])
async def problem(code: FromPath[str]) -> CodeOut:
    """What a code of problem details means."""
    known = CODES.get(code)
    if known is None:
        raise NotFound("no such code")
    return CodeOut(code, known.status, known.title, known.meaning)


ROUTES = (healthz, readyz, problem)
