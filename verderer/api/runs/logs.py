"""GET /runs/{run}/steps/{step}/logs: as text that may be followed, or as pages of lines."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Annotated, Any

from litestar import MediaType, Request, Response, get
from litestar.di import NamedDependency, Provide
from litestar.openapi.datastructures import ResponseSpec
from litestar.params import QueryParameter, SkipValidation
from litestar.response import Stream

from verderer.api.auth import actor_of, context_of
from verderer.api.runs.found import READ, RunArg, StepArg
from verderer.api.runs.log_follow import Following, follow
from verderer.api.runs.log_text import TextWriter, Wanted, last_items
from verderer.api.runs.output import Output, find_output, replicas_of, source_of
from verderer.objects.log_chunks import ChunkSource
from verderer.objects.log_lines import LogItem, LogLine
from verderer.objects.log_reading import read_lines, read_page, tail
from verderer.wire.runs import LogItemOut, LogPageOut

MOST_LINES = 10_000
_PART = 64 * 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class Which:
    """Whose output: None is the newest attempt."""

    attempt: int | None
    replica: int


@dataclass(frozen=True, slots=True, kw_only=True)
class How:
    """What the reader wants of it."""

    follow: bool
    tail: int | None
    wanted: Wanted


async def provide_which(
    attempt: Annotated[
        int | None, QueryParameter(ge=1, le=32_000, description="Without it the newest.")
    ] = None,
    replica: Annotated[
        int, QueryParameter(ge=0, le=32_000, description="Of a step on several nodes, from 0.")
    ] = 0,
) -> Which:
    """Dependency `which`."""
    return Which(attempt=attempt, replica=replica)


async def provide_how(
    follow_: Annotated[
        bool, QueryParameter(name="follow", description="Stay, and give what comes.")
    ] = False,
    tail_: Annotated[
        int | None,
        QueryParameter(name="tail", ge=0, le=MOST_LINES, description="Only so many last lines."),
    ] = None,
    search: Annotated[
        str, QueryParameter(max_length=500, description="Only lines that hold this text.")
    ] = "",
    timestamps: Annotated[
        bool, QueryParameter(description="Begin each line with when it was written, UTC.")
    ] = False,
) -> How:
    """Dependency `how`."""
    return How(follow=follow_, tail=tail_, wanted=Wanted(search=search, timestamps=timestamps))


OffsetArg = Annotated[
    int, QueryParameter(ge=0, le=1 << 62, description="JSON: where the page starts, in bytes.")
]
LinesArg = Annotated[
    int, QueryParameter(ge=1, le=5_000, description="JSON: how many lines at most.")
]


@get(
    "/runs/{run:str}/steps/{step:str}/logs",
    opt=READ,
    tags=["runs"],
    summary="Read or follow a step's output",
    dependencies={"which": Provide(provide_which), "how": Provide(provide_how)},
    media_type=MediaType.TEXT,
    responses={
        200: ResponseSpec(
            LogPageOut,
            description="Text by default; with `Accept: application/json` a page of lines.",
        )
    },
)
async def logs(
    request: Request[Any, Any, Any],
    run: RunArg,
    step: StepArg,
    which: NamedDependency[SkipValidation[Which]],
    how: NamedDependency[SkipValidation[How]],
    offset: OffsetArg = 0,
    limit: LinesArg = 1_000,
) -> Response[Any]:
    """What a step wrote, complete also when its process is gone.

    Text comes as it is read and ends when the log is complete and the attempt is over; with
    `follow` not earlier, and without `attempt` it goes on with the next one. Lines that begin with
    `[verderer]` are not the program's: they say where output is missing. The text is what the
    program wrote, terminal escapes included.
    """
    context, actor = context_of(request.scope), actor_of(request.scope)
    async with context.db.reading() as tx:
        head, output = await find_output(tx, actor, run, step, which.attempt, which.replica)
        replicas = await replicas_of(tx, actor, head, output)
    source = source_of(request.app.state)
    if _wants_json(request):
        page = await _page(source, output, replicas, offset, limit)
        return Response(page, media_type=MediaType.JSON)
    if not how.follow:
        return _text(_whole(source, output, how))
    following = Following(
        context=context,
        recheck=request.scope["state"]["recheck"],
        source=source,
        run=head,
        step=output.step,
        number=which.attempt,
        replica=which.replica,
        tail=how.tail,
        wanted=how.wanted,
    )
    return _text(follow(following, output))


def _wants_json(request: Request[Any, Any, Any]) -> bool:
    accept = request.headers.get("accept", "")
    return "application/json" in accept and "text/plain" not in accept


async def _page(
    source: ChunkSource, output: Output, replicas: int, offset: int, limit: int
) -> LogPageOut:
    page = await read_page(source, output.infos, start=offset, limit=limit)
    return LogPageOut(
        attempt=output.attempt.number if output.attempt else 0,
        replica=output.replica,
        replicas=replicas,
        items=[_show(item) for item in page.items],
        next_offset=page.next_offset,
        ended=page.ended,
        complete=output.complete or (output.over and not output.awaited),
    )


def _show(item: LogItem) -> LogItemOut:
    if isinstance(item, LogLine):
        at = datetime.fromtimestamp(item.unix_ms / 1000, UTC) if item.unix_ms else None
        return LogItemOut(offset=item.offset, text=item.text, at=at, truncated=item.truncated)
    return LogItemOut(offset=item.offset, gap=item.reason or "unknown", lost=item.lost)


async def _whole(source: ChunkSource, output: Output, how: How) -> AsyncIterator[str]:
    """Everything there is, in parts of some 64 KiB."""
    writer = TextWriter(how.wanted)
    if how.tail is not None:
        if how.wanted.search:
            found = [item async for item in read_lines(source, output.infos) if writer.shows(item)]
            yield writer.write(last_items(found, writer, how.tail))
        else:
            yield writer.write(await tail(source, output.infos, how.tail))
    else:
        part: list[str] = []
        size = 0
        async for item in read_lines(source, output.infos):
            text = writer.write((item,))
            part.append(text)
            size += len(text)
            if size >= _PART:
                yield "".join(part)
                part, size = [], 0
        yield "".join(part)
    if note := output.end_note:
        yield writer.note(note)


def _text(body: AsyncIterator[str]) -> Stream:
    return Stream(
        body,
        media_type="text/plain; charset=utf-8",
        # A proxy that gathers parts before it passes them on would undo following.
        headers={"X-Accel-Buffering": "no", "Cache-Control": "no-store"},
    )


ROUTES = (logs,)
