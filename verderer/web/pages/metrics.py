"""What the steps of a run tracked: curves by metric, and their parameters side by side."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import msgspec
from litestar import Response, get
from litestar.params import FromPath

from verderer.core.access import Action
from verderer.store.views import tracking
from verderer.store.views.steps import list_steps
from verderer.store.views.tracking import Curve, TrackedParams, TrackedRow
from verderer.web import visitor
from verderer.web.gate import asks
from verderer.web.pages.run import Head, head, load
from verderer.web.parts import PartsArg
from verderer.web.render import HEADERS, RendererArg
from verderer.web.visitor import HttpRequest

_LINES = 20  # curves in one chart; more cannot be told apart


@dataclass(frozen=True, slots=True, kw_only=True)
class MetricsPage:
    """Context of `run_metrics.html`."""

    head: Head
    charts: tuple[str, ...]
    tracked: tuple[TrackedRow, ...]
    params: tuple[tuple[str, tuple[str, ...]], ...]
    """Name of a parameter, and its value in each of `columns`."""
    columns: tuple[TrackedRow, ...]
    live_url: str


@get("/runs/{run:str}/metrics", opt=asks(Action.RUN_READ))
async def metrics_page(
    request: HttpRequest, parts: PartsArg, renderer: RendererArg, run: FromPath[str]
) -> Response[str]:
    """The page; its charts fetch their points."""
    here = visitor.of(request)
    scope = here.who.scope
    async with parts.ctx.db.reading() as tx:
        found = await load(tx, here, run)
        steps = await list_steps(tx, scope, found.id)
        tracked = await tracking.runs_of_run(tx, scope, found.id)
        params = await tracking.params_of_run(tx, scope, found.id)
    page = MetricsPage(
        head=head(here, found, steps, "metrics"),
        charts=tuple(sorted({key for row in tracked for key in row.latest})),
        tracked=tuple(tracked),
        params=_table(params[:_LINES]),
        columns=tuple(p.tracked for p in params[:_LINES]),
        live_url="" if found.state.over else f"/runs/{run}/live",
    )
    return renderer.page(request, "run_metrics.html", page)


@get("/runs/{run:str}/metrics/curves", opt=asks(Action.RUN_READ))
async def curves(request: HttpRequest, parts: PartsArg, run: FromPath[str]) -> Response[bytes]:
    """Points of every chart."""
    here = visitor.of(request)
    async with parts.ctx.db.reading() as tx:
        found = await load(tx, here, run)
        by_metric = await tracking.metrics_of_run(tx, here.who.scope, found.id)
    body = {key: _chart(lines[:_LINES]) for key, lines in sorted(by_metric.items())}
    return Response(msgspec.json.encode(body), media_type="application/json", headers=HEADERS)


def _chart(lines: Sequence[Curve]) -> dict[str, Any]:
    """The steps of all lines together, and each line's value there, the last one that counts."""
    places = sorted({point.step for line in lines for point in line.points})
    index = {step: n for n, step in enumerate(places)}
    columns: list[list[float | None]] = []
    for line in lines:
        values: list[float | None] = [None] * len(places)
        for point in line.points:
            values[index[point.step]] = point.value if math.isfinite(point.value) else None
        columns.append(values)
    return {"x": places, "names": [_name(line.tracked) for line in lines], "lines": columns}


def _name(row: TrackedRow) -> str:
    attempt = f" · {row.attempt}" if row.attempt and row.attempt > 1 else ""
    return f"{row.step or row.name}{attempt}"


def _table(params: Sequence[TrackedParams]) -> tuple[tuple[str, tuple[str, ...]], ...]:
    values: list[Mapping[str, str]] = [dict(p.params) for p in params]
    names = sorted({name for given in values for name in given})
    return tuple((name, tuple(given.get(name, "") for given in values)) for name in names)


ROUTES = (metrics_page, curves)
