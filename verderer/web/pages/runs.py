"""The list of runs: filtered by plain words, paged by key, kept alive, exported."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from litestar import Response, get
from litestar.response import Stream

from verderer.core.access import Action
from verderer.core.model.actor import Scope
from verderer.core.model.ids import parse_run_id, run_id_text
from verderer.core.model.run import RunState
from verderer.store.views.runs import RunFilter, RunRow, list_runs, run_counts
from verderer.store.views.visible import ProjectRow, list_projects
from verderer.web import live, search_syntax, visitor
from verderer.web.gate import asks
from verderer.web.language import N_
from verderer.web.pages.overview import chosen, topics_of
from verderer.web.parts import PartsArg
from verderer.web.render import HEADERS, RendererArg
from verderer.web.visitor import HttpRequest

PAGE: Final = 50
_EXPORTED: Final = 10_000
COLUMNS: Final = {
    "project": N_("Project"),
    "id": N_("Run"),
    "steps": N_("Steps"),
    "labels": N_("Labels"),
    "by": N_("By"),
    "created": N_("Submitted"),
    "took": N_("Took"),
}
USUAL: Final = ("project", "steps", "by", "created", "took")


@dataclass(frozen=True, slots=True, kw_only=True)
class RunsPage:
    """Context of `runs.html`."""

    q: str
    oldest: bool
    columns: tuple[str, ...]
    all_columns: Mapping[str, str]
    rows: tuple[RunRow, ...]
    next: str
    first: bool
    counts: Mapping[RunState, int]
    unknown: tuple[str, ...]
    project: str
    projects: tuple[ProjectRow, ...]
    query: Mapping[str, str]
    """The parameters that make this list, without its page."""
    live_url: str = ""


@get("/runs", opt=asks(Action.RUN_READ))
async def runs_page(request: HttpRequest, parts: PartsArg, renderer: RendererArg) -> Response[str]:
    """A page of the runs that the reader may see."""
    here = visitor.of(request)
    asked = request.query_params
    async with parts.ctx.db.reading() as tx:
        projects = await list_projects(tx, here.who.scope)
        project = chosen(here.project, projects)
        search = _search(asked, project)
        before = _key(asked.get("before", ""))
        found = await list_runs(tx, here.who.scope, search.filter, before=before, limit=PAGE)
        counts = await run_counts(tx, here.who.scope, search.filter.project)
    columns = tuple(c for c in asked.get("columns", "").split(",") if c in COLUMNS) or USUAL
    query = {k: v for k in ("q", "order", "columns") if (v := asked.get(k, ""))}
    page = RunsPage(
        q=asked.get("q", ""),
        oldest=search.filter.oldest_first,
        columns=columns,
        all_columns=COLUMNS,
        rows=found.rows,
        next=run_id_text(found.before) if found.before is not None else "",
        first=before is None,
        counts=counts,
        unknown=search.unknown,
        project=project,
        projects=tuple(projects),
        query=query,
        live_url="/runs/live" if before is None else "",
    )
    return renderer.page(request, "runs.html", page)


@get("/runs/live", opt=asks(Action.RUN_READ))
async def runs_news(request: HttpRequest, parts: PartsArg) -> Stream:
    """Says when the list may have changed."""
    return live.stream(parts, changed=await topics_of(request, parts))


@get(["/runs/export.csv", "/runs/export.json"], opt=asks(Action.RUN_READ))
async def export_runs(request: HttpRequest, parts: PartsArg) -> Stream:
    """The list as CSV or JSON, at most ten thousand runs."""
    here = visitor.of(request)
    kind = request.url.path.rpartition(".")[2]
    async with parts.ctx.db.reading() as tx:
        project = chosen(here.project, await list_projects(tx, here.who.scope))
    wanted = _search(request.query_params, project).filter
    rows = _all(parts, here.who.scope, wanted)
    body = _as_csv(rows) if kind == "csv" else _as_json(rows)
    return Stream(
        body,
        media_type="text/csv; charset=utf-8" if kind == "csv" else "application/json",
        headers=HEADERS | {"Content-Disposition": f'attachment; filename="runs.{kind}"'},
    )


def _search(asked: Mapping[str, Any], project: str) -> search_syntax.Search:
    return search_syntax.parse(
        str(asked.get("q", "")), project=project, oldest_first=asked.get("order") == "oldest"
    )


def _key(text: str) -> int | None:
    try:
        return parse_run_id(text)
    except ValueError:
        return None


async def _all(parts: PartsArg, scope: Scope, wanted: RunFilter) -> AsyncIterator[RunRow]:
    before: int | None = None
    given = 0
    while given < _EXPORTED:
        async with parts.ctx.db.reading() as tx:
            found = await list_runs(tx, scope, wanted, before=before, limit=500)
        for row in found.rows:
            yield row
        given += len(found.rows)
        before = found.before
        if before is None:
            return


def _record(row: RunRow) -> dict[str, Any]:
    return {
        "id": run_id_text(row.id),
        "name": row.name,
        "project": row.project,
        "state": row.state.value,
        "steps": row.steps,
        "open": row.open,
        "failed": row.failed,
        "by": row.actor.partition(":")[2],
        "labels": dict(row.labels),
        "created_at": row.created_at.isoformat(),
        "started_at": row.started_at.isoformat() if row.started_at else None,
        "ended_at": row.ended_at.isoformat() if row.ended_at else None,
    }


async def _as_json(rows: AsyncIterator[RunRow]) -> AsyncIterator[str]:
    yield "["
    separator = "\n"
    async for row in rows:
        yield separator + json.dumps(_record(row), ensure_ascii=False)
        separator = ",\n"
    yield "\n]\n"


async def _as_csv(rows: AsyncIterator[RunRow]) -> AsyncIterator[str]:
    header = True
    async for row in rows:
        record = _record(row)
        record["labels"] = " ".join(f"{k}={v}" for k, v in sorted(row.labels.items()))
        text = io.StringIO()
        writer = csv.DictWriter(text, list(record))
        if header:
            writer.writeheader()
            header = False
        writer.writerow({k: _no_formula(v) for k, v in record.items()})
        yield text.getvalue()


def _no_formula(value: Any) -> Any:
    """Spreadsheets run cells that begin like a formula; a quote before it stops them."""
    return f"'{value}" if isinstance(value, str) and value[:1] in "=+-@\t\r" and value else value


ROUTES = (runs_page, runs_news, export_runs)
