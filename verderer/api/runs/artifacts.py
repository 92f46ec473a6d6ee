"""GET /runs/{run}/artifacts/…: the bytes that steps left behind."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Annotated, Any
from urllib.parse import quote

from litestar import MediaType, Request, Response, get
from litestar.params import FromPath, PathParameter, QueryParameter
from litestar.response import Redirect, Stream

from verderer.api.auth import ActorArg, ContextArg
from verderer.api.paging import AfterArg, Page, read_cursor, write_cursor
from verderer.api.runs.documents import is_folder
from verderer.api.runs.found import READ, RunArg, the_run
from verderer.core.errors import Invalid, NotFound, Problem
from verderer.core.model.actor import Actor
from verderer.objects.archive import zip_of
from verderer.objects.config import Backend
from verderer.objects.serving import download
from verderer.store.views.steps import ArtifactRow, list_artifacts
from verderer.usecases.context import Context
from verderer.wire.runs import ArtifactFile

GRANT_S = 900.0
_FILES = 1_000
_MOST_PATH = 1_000
_BELOW = "/runs/{run:str}/artifacts/{index:int}/{attempt:int}/{name:str}"

IndexArg = Annotated[int, PathParameter(ge=0, lt=1 << 31, description="The step's index.")]
AttemptArg = Annotated[int, PathParameter(ge=1, lt=1 << 15, description="The attempt's number.")]


@get(_BELOW + "/files", opt=READ, tags=["runs"], summary="List the files of an artifact")
async def files(
    request: Request[Any, Any, Any],
    context: ContextArg,
    actor: ActorArg,
    run: RunArg,
    index: IndexArg,
    attempt: AttemptArg,
    name: FromPath[str],
    after: AfterArg = "",
) -> Page[ArtifactFile]:
    """Each file with an address that works for a quarter of an hour and needs no credential.

    An address that begins with `/` is below the server's own.
    """
    found = await _find(context, actor, run, (index, attempt, name))
    state = request.app.state
    if not is_folder(found):
        urls = await state.grants.grant([found.key], "GET", GRANT_S)
        return Page([ArtifactFile(path="", size=found.size, url=urls[found.key])])
    prefix = _prefix(found)
    last = read_cursor(after, str)
    start = prefix + last if last else None
    page = await state.objects.list(prefix, after=start, limit=_FILES)
    urls = await state.grants.grant([one.key for one in page], "GET", GRANT_S) if page else {}
    items = [
        ArtifactFile(path=one.key.removeprefix(prefix), size=one.size, url=urls[one.key])
        for one in page
    ]
    more = len(page) == _FILES
    return Page(items, write_cursor(page[-1].key.removeprefix(prefix)) if more else None)


@get(
    _BELOW + "/content",
    opt=READ,
    tags=["runs"],
    summary="Download an artifact",
    media_type=MediaType.TEXT,
)
async def content(
    request: Request[Any, Any, Any],
    context: ContextArg,
    actor: ActorArg,
    run: RunArg,
    index: IndexArg,
    attempt: AttemptArg,
    name: FromPath[str],
    file: Annotated[
        str,
        QueryParameter(
            max_length=_MOST_PATH, description="Which file of a folder, as `files` lists it."
        ),
    ] = "",
) -> Response[Any]:
    """The bytes of one file, by ranges if asked; from S3 by a redirect to a short-lived address.

    416 `range_not_satisfiable` when the range lies outside the file.
    """
    found = await _find(context, actor, run, (index, attempt, name))
    key = _key(found, file)
    state = request.app.state
    if state.objects.backend is Backend.S3:
        urls = await state.grants.grant([key], "GET", GRANT_S)
        return Redirect(urls[key], status_code=307)
    answer = await download(
        state.objects,
        key,
        range_header=request.headers.get("range", ""),
        if_none_match=request.headers.get("if-none-match", ""),
    )
    headers = {**answer.headers, **_saved_as(file.rpartition("/")[2] or found.name)}
    # As a header: the framework lets the route's own media type win over the answer's.
    return Stream(answer.body or _nothing(), status_code=answer.status, headers=headers)


@get(
    _BELOW + "/archive",
    opt=READ,
    tags=["runs"],
    summary="Download a folder as a ZIP",
    media_type="application/zip",
)
async def archive(
    request: Request[Any, Any, Any],
    context: ContextArg,
    actor: ActorArg,
    run: RunArg,
    index: IndexArg,
    attempt: AttemptArg,
    name: FromPath[str],
) -> Stream:
    """All files of the artifact in one ZIP, made while it is sent and not compressed."""
    found = await _find(context, actor, run, (index, attempt, name))
    if not is_folder(found):
        raise Invalid("the artifact is one file", hint="`content` gives it as it is")
    zipped = zip_of(request.app.state.objects, _prefix(found))
    return Stream(zipped, headers=_saved_as(f"{found.name}.zip"))


async def _find(
    context: Context, actor: Actor, run: str, named: tuple[int, int, str]
) -> ArtifactRow:
    index, attempt, name = named
    async with context.db.reading() as tx:
        head = await the_run(tx, actor, run)
        rows = await list_artifacts(tx, actor.scope, head.id, index)
    for row in rows:
        if (row.number, row.name) == (attempt, name):
            return row
    raise NotFound("this run has no such artifact")


def _prefix(found: ArtifactRow) -> str:
    return found.key.rstrip("/") + "/"


def _key(found: ArtifactRow, file: str) -> str:
    if not is_folder(found):
        return found.key
    if not file:
        problem = Problem(
            field="file",
            message="is missing",
            hint="`files` lists them, and `archive` gives all as one ZIP",
        )
        raise Invalid("the artifact is a folder of files", problems=[problem])
    if any(part in ("", ".", "..") for part in file.split("/")):
        raise NotFound("the artifact has no such file")
    return _prefix(found) + file


def _saved_as(name: str) -> dict[str, str]:
    return {"content-disposition": f"attachment; filename*=UTF-8''{quote(name, safe='')}"}


async def _nothing() -> AsyncIterator[bytes]:
    yield b""


ROUTES = (files, content, archive)
