"""Output of an attempt for the viewer: lines by number, searches, and the whole as a file."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Any

import msgspec
from litestar import Response, get
from litestar.response import Stream

from verderer.core.access import Action
from verderer.core.model.attempt import AttemptKey
from verderer.core.model.places import log_prefix
from verderer.objects.log_chunks import ChunkInfo, ChunkSource
from verderer.store.views.logs import list_log_chunks
from verderer.web import visitor
from verderer.web.ansi import to_html
from verderer.web.gate import asks
from verderer.web.log_window import LogWindow, Part, Row
from verderer.web.pages.run import load
from verderer.web.parts import PartsArg
from verderer.web.render import HEADERS
from verderer.web.visitor import HttpRequest

_PATH = "/runs/{run:str}/logs/{idx:int}/{number:int}/{replica:int}"
_ROWS = 400
_HITS = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class _Log:
    """A replica's chunks with what is known of them."""

    name: str
    infos: tuple[ChunkInfo, ...]
    window: LogWindow
    complete: bool
    lost: int


@get(_PATH, opt=asks(Action.RUN_READ))
async def log_lines(request: HttpRequest, parts: PartsArg) -> Response[bytes]:
    """Some lines, and how many there are."""
    log = await _open(request, parts)
    asked = request.query_params
    rows = await log.window.rows(_int(asked.get("from", "")), _int(asked.get("count", ""), _ROWS))
    unfinished = bool(rows) and rows[-1].number >= log.window.feeds
    return _json(
        {
            "total": log.window.feeds + unfinished,
            "bytes": log.window.bytes,
            "lost": log.lost,
            "complete": log.complete,
            "rows": [_row(row) for row in rows],
        }
    )


@get(_PATH + "/find", opt=asks(Action.RUN_READ))
async def find_in_log(request: HttpRequest, parts: PartsArg) -> Response[bytes]:
    """Numbers of the lines that hold a text; without one, of those that look like errors."""
    log = await _open(request, parts)
    asked = request.query_params
    hits, then = await log.window.find(
        asked.get("text", "")[:500], first=_int(asked.get("from", "")), limit=_HITS
    )
    return _json({"hits": hits, "next": then})


@get(_PATH + "/download", opt=asks(Action.RUN_READ))
async def download_log(request: HttpRequest, parts: PartsArg) -> Stream:
    """All of it as the program wrote it; what is missing is said where it is missing."""
    log = await _open(request, parts)
    return Stream(
        _bytes(parts.logs, log.infos),
        media_type="text/plain; charset=utf-8",
        headers=HEADERS | {"Content-Disposition": f'attachment; filename="{log.name}.log"'},
    )


async def _open(request: HttpRequest, parts: PartsArg) -> _Log:
    here = visitor.of(request)
    path = request.path_params
    run = str(path["run"])
    step, number, replica = (
        min(max(int(path[k]), 0), 32_000) for k in ("idx", "number", "replica")
    )
    async with parts.ctx.db.reading() as tx:
        found = await load(tx, here, run)
        chunks = await list_log_chunks(tx, here.who.scope, found.id, step, number, replica)
    prefix = log_prefix(found.project_id, AttemptKey(found.id, step, number))
    infos = [ChunkInfo.below(prefix, chunk) for chunk in chunks]
    return _Log(
        name=f"{found.name}-{run}-{step}-{number}-{replica}",
        infos=tuple(infos),
        window=LogWindow(
            parts.logs, [Part(i, c.lines) for i, c in zip(infos, chunks, strict=True)]
        ),
        complete=any(c.complete for c in chunks),
        lost=sum(c.lost for c in chunks),
    )


async def _bytes(source: ChunkSource, infos: tuple[ChunkInfo, ...]) -> AsyncIterator[bytes]:
    for info in infos:
        fetched = await source.fetch(info)
        yield fetched.chunk.data
        if fetched.missing:
            yield f"\n[{info.end - fetched.chunk.end} bytes: {fetched.missing}]\n".encode()


def _row(row: Row) -> list[Any]:
    return [row.number, row.unix_ms, to_html(row.text), row.more, row.gap, row.lost]


def _json(value: Any) -> Response[bytes]:
    return Response(msgspec.json.encode(value), media_type="application/json", headers=HEADERS)


def _int(text: str, otherwise: int = 0) -> int:
    return int(text) if text.isascii() and text.isdigit() and len(text) < 12 else otherwise


ROUTES = (log_lines, find_in_log, download_log)
