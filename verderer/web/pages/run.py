"""One run: the graph with live states, the selected step, why it waits, and its output."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from litestar import Response, get, post
from litestar.params import FromPath
from litestar.response import Redirect, Stream

from verderer.core.access import Action, require
from verderer.core.errors import NotFound
from verderer.core.model.attempt import AttemptKey
from verderer.core.model.ids import parse_run_id, run_id_text
from verderer.store.database import Tx
from verderer.store.views.logs import ReplicaLog, list_replicas
from verderer.store.views.runs import RunDetail, get_run
from verderer.store.views.steps import (
    AttemptRow,
    Shown,
    StepRow,
    list_attempts,
    list_edges,
    list_steps,
)
from verderer.store.views.waiting import Blocker, Waiting, blockers, waiting
from verderer.store.views.why import OnCluster, stuck_steps
from verderer.usecases.cancel_run import cancel
from verderer.usecases.context import Context
from verderer.usecases.explain_silence import explain_silence
from verderer.usecases.retry_run import retry
from verderer.web import live, timeline, visitor
from verderer.web.findings import Behind, find_behind
from verderer.web.formats import Formats
from verderer.web.gate import asks
from verderer.web.graph import Drawing, draw
from verderer.web.parts import PartsArg
from verderer.web.reasons import Line, ending, explain, explain_all, explain_there
from verderer.web.render import RendererArg
from verderer.web.states import ORDER
from verderer.web.visitor import HttpRequest, Visitor

_LISTED = 300  # members of a collapsed group in the panel


@dataclass(frozen=True, slots=True, kw_only=True)
class Head:
    """What every page about a run shows above its own part."""

    run: RunDetail
    counts: Mapping[str, int]
    clusters: tuple[str, ...]
    may_cancel: bool
    may_retry: bool
    may_clone: bool
    tab: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Panel:
    """The selected step."""

    step: StepRow
    attempts: tuple[AttemptRow, ...]
    attempt: AttemptRow | None
    """The one whose output is shown."""
    ending: str
    behind: Behind | None
    """What lies behind a failure, where something tells."""
    waiting: Waiting | None
    there: OnCluster | None
    """Set while its newest attempt has not begun on its cluster."""
    fence: Line | None
    """When it may start elsewhere, if its cluster is silent and it says that it may."""
    reasons: tuple[Line, ...]
    blockers: tuple[Blocker, ...]
    replicas: tuple[ReplicaLog, ...]
    siblings: tuple[StepRow, ...]
    """Instances of the same matrix, those that need a look first: three hundred at most."""
    instances: int
    """All of them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunPage:
    """Context of `run.html`."""

    head: Head
    drawing: Drawing
    spans: Mapping[int, tuple[float, float]]
    """By step: where its time begins in that of the run and how long it is, in thousandths."""
    panel: Panel | None
    panel_keys: tuple[int, ...] | None
    """The box of the selected step, or of the matrix that it belongs to."""
    replica: int
    live_url: str


@get("/runs/{run:str}", opt=asks(Action.RUN_READ))
async def run_page(
    request: HttpRequest, parts: PartsArg, renderer: RendererArg, run: FromPath[str]
) -> Response[str]:
    """Graph, step and output."""
    here = visitor.of(request)
    scope = here.who.scope
    asked = request.query_params
    async with parts.ctx.db.reading() as tx:
        found = await load(tx, here, run)
        steps = await list_steps(tx, scope, found.id)
        drawing = draw(steps, await list_edges(tx, scope, found.id))
        step = _selected(steps, _number(asked.get("step")))
        panel = None
        if step is not None:
            number = _number(asked.get("attempt"))
            panel = await _panel(parts.ctx, tx, here, found, step, steps, number)
    if panel is not None:
        key = AttemptKey(found.id, panel.step.idx, panel.attempt.number if panel.attempt else 0)
        told = await find_behind(parts, here, found.project_id, key, panel.step, panel.attempt)
        panel = replace(panel, behind=told)
    page = RunPage(
        head=head(here, found, steps, "graph"),
        drawing=drawing,
        spans=_spans(found, steps, parts.ctx.clock()),
        panel=panel,
        panel_keys=_boxes_of(step, drawing),
        replica=_number(asked.get("replica")) or 0,
        live_url=f"/runs/{run}/live{f'?step={step.idx}' if step else ''}",
    )
    return renderer.page(request, "run.html", page)


@get("/runs/{run:str}/live", opt=asks(Action.RUN_READ))
async def run_news(request: HttpRequest, parts: PartsArg, run: FromPath[str]) -> Stream:
    """`changed` when the run moved, `log` when the selected step wrote something."""
    async with parts.ctx.db.reading() as tx:
        found = await load(tx, visitor.of(request), run)
    step = _number(request.query_params.get("step"))
    return live.stream(parts, changed=[f"run:{found.id}"], log=[f"log:{found.id}:{step}"])


@post("/runs/{run:str}/cancel", opt=asks(Action.RUN_CANCEL))
async def cancel_run(request: HttpRequest, parts: PartsArg, run: FromPath[str]) -> Response[str]:
    """Ask it to end; nothing new of it starts from here on."""
    await cancel(parts.ctx, visitor.of(request).who, run_id(run))
    return Redirect(f"/runs/{run}", status_code=303)


@post("/runs/{run:str}/retry", opt=asks(Action.RUN_RETRY))
async def retry_run(request: HttpRequest, parts: PartsArg, run: FromPath[str]) -> Response[str]:
    """Run what did not succeed once more, or all of it."""
    form = await request.form()
    everything = form.get("everything") == "1"
    await retry(parts.ctx, visitor.of(request).who, run_id(run), everything=everything)
    return Redirect(f"/runs/{run}", status_code=303)


def run_id(text: str) -> int:
    """The id in a path.

    Raises:
        NotFound: it is not one.
    """
    try:
        return parse_run_id(text)
    except ValueError:
        raise NotFound("there is no such run") from None


async def load(tx: Tx, here: Visitor, text: str) -> RunDetail:
    """The run that a path names.

    Raises:
        NotFound: there is none, or it is not the reader's to know about.
    """
    found = await get_run(tx, here.who.scope, run_id(text))
    if found is None:
        raise NotFound("there is no such run")
    require(here.who, Action.RUN_READ, project=found.project_id)
    return found


def head(here: Visitor, run: RunDetail, steps: Sequence[StepRow], tab: str) -> Head:
    """The part that is the same on all tabs."""
    counts = Counter(str(step.shown) for step in steps)
    over = run.state.over
    return Head(
        run=run,
        counts={s: counts[s] for s in (*ORDER, *sorted(counts)) if counts[s]},
        clusters=tuple(sorted({s.attempt.cluster_id for s in steps if s.attempt})),
        may_cancel=not over
        and run.state.value != "cancelling"
        and here.may(Action.RUN_CANCEL, project=run.project_id),
        may_retry=over and here.may(Action.RUN_RETRY, project=run.project_id),
        may_clone=here.may(Action.RUN_SUBMIT, project=run.project_id),
        tab=tab,
    )


async def _panel(
    ctx: Context,
    tx: Tx,
    here: Visitor,
    run: RunDetail,
    step: StepRow,
    steps: Sequence[StepRow],
    number: int | None,
) -> Panel:
    scope = here.who.scope
    formats = Formats(here.language)
    attempts = await list_attempts(tx, scope, run.id, step.idx)
    attempt = next((a for a in attempts if a.number == number), attempts[-1] if attempts else None)
    place = await waiting(tx, scope, run.id, step.idx, limit=1) if step.state == "ready" else []
    before = await blockers(tx, scope, run.id, step.idx) if step.state == "blocked" else []
    there, fence = None, None
    if step.shown in (Shown.STARTING, Shown.UNKNOWN):
        stuck = await stuck_steps(tx, scope, run.id, step.idx, limit=1)
        there = stuck[0].on_cluster if stuck and step.shown is Shown.STARTING else None
        fence = await explain_silence(ctx, tx, stuck[0]) if stuck else None
    replicas = await list_replicas(tx, scope, run.id, step.idx, attempt.number) if attempt else []
    return Panel(
        step=step,
        attempts=tuple(reversed(attempts)),
        attempt=attempt,
        ending=ending(attempt, formats) if attempt else "",
        behind=None,
        waiting=place[0] if place else None,
        there=there,
        fence=explain(fence, formats) if fence else None,
        reasons=_reasons(place, step, there, formats),
        blockers=tuple(before),
        replicas=tuple(replicas),
        siblings=_siblings(step, steps),
        instances=sum(s.template == step.template for s in steps),
    )


def _reasons(
    place: Sequence[Waiting], step: StepRow, there: OnCluster | None, formats: Formats
) -> tuple[Line, ...]:
    if place:
        return explain_all(place[0].reasons, formats)
    if there is None or step.attempt is None:
        return ()
    return (explain_there(step.attempt.cluster_id, there, formats),)


def _selected(steps: Sequence[StepRow], asked: int | None) -> StepRow | None:
    """The step that was asked for, or the one that people most likely come for."""
    if asked is not None:
        return next((step for step in steps if step.idx == asked), None)
    for shown in (Shown.FAILED, Shown.LOST, Shown.UNKNOWN, Shown.RUNNING, Shown.STARTING):
        if found := [step for step in steps if step.shown is shown]:
            return found[0]
    ready = [step for step in steps if step.state == "ready"]
    return next(iter(ready or list(reversed(steps))), None)


def _siblings(step: StepRow, steps: Sequence[StepRow]) -> tuple[StepRow, ...]:
    if step.matrix is None:
        return ()
    rank = {state: n for n, state in enumerate(ORDER)}
    group = [s for s in steps if s.template == step.template]
    return tuple(sorted(group, key=lambda s: (rank.get(str(s.shown), 9), s.idx))[:_LISTED])


def _spans(
    run: RunDetail, steps: Sequence[StepRow], now: datetime
) -> dict[int, tuple[float, float]]:
    bars = timeline.measure(steps, start=run.created_at, end=run.ended_at, now=now).bars
    return {bar.step.idx: (bar.run_x, bar.run_width) for bar in bars}


def _boxes_of(step: StepRow | None, drawing: Drawing) -> tuple[int, ...] | None:
    if step is None:
        return None
    return tuple(box.item.key for box in drawing.boxes if step.idx in box.item.steps)


def _number(text: str | None) -> int | None:
    return int(text) if text and text.isascii() and text.isdigit() and len(text) < 7 else None


def link(run: int) -> str:
    """The address of a run's page."""
    return f"/runs/{run_id_text(run)}"


ROUTES = (run_page, run_news, cancel_run, retry_run)
