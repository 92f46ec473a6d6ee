"""The other views of a run: its steps on a time scale, artifacts, YAML and events."""

from __future__ import annotations

from dataclasses import dataclass
from urllib.parse import quote

from litestar import Response, get
from litestar.params import FromPath
from litestar.response import Stream

from verderer.core.access import Action
from verderer.core.errors import NotFound
from verderer.objects.archive import zip_of
from verderer.store.views.runs import Event, list_events
from verderer.store.views.steps import ArtifactRow, StepRow, list_artifacts, list_steps
from verderer.web import timeline, visitor
from verderer.web.gate import asks
from verderer.web.pages.run import Head, head, load
from verderer.web.parts import PartsArg
from verderer.web.render import HEADERS, RendererArg
from verderer.web.timeline import Timeline
from verderer.web.visitor import HttpRequest

_EVENTS = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class StepsPage:
    """Context of `run_steps.html`."""

    head: Head
    timeline: Timeline
    state: str
    live_url: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ArtifactsPage:
    """Context of `run_artifacts.html`."""

    head: Head
    artifacts: tuple[ArtifactRow, ...]
    live_url: str


@dataclass(frozen=True, slots=True, kw_only=True)
class YamlPage:
    """Context of `run_yaml.html`."""

    head: Head


@dataclass(frozen=True, slots=True, kw_only=True)
class EventsPage:
    """Context of `run_events.html`."""

    head: Head
    events: tuple[Event, ...]
    names: dict[int, str]
    next: int | None
    live_url: str


@get("/runs/{run:str}/steps", opt=asks(Action.RUN_READ))
async def steps_page(
    request: HttpRequest, parts: PartsArg, renderer: RendererArg, run: FromPath[str]
) -> Response[str]:
    """Every step with its time bar."""
    here = visitor.of(request)
    async with parts.ctx.db.reading() as tx:
        found = await load(tx, here, run)
        steps = await list_steps(tx, here.who.scope, found.id)
    wanted = request.query_params.get("state", "")
    chosen = [s for s in steps if not wanted or str(s.shown) == wanted]
    start = min([s.ready_at for s in steps if s.ready_at], default=found.created_at)
    page = StepsPage(
        head=head(here, found, steps, "steps"),
        timeline=timeline.measure(chosen, start=start, end=found.ended_at, now=parts.ctx.clock()),
        state=wanted,
        live_url="" if found.state.over else f"/runs/{run}/live",
    )
    return renderer.page(request, "run_steps.html", page)


@get("/runs/{run:str}/artifacts", opt=asks(Action.RUN_READ))
async def artifacts_page(
    request: HttpRequest, parts: PartsArg, renderer: RendererArg, run: FromPath[str]
) -> Response[str]:
    """What the steps left behind."""
    here = visitor.of(request)
    async with parts.ctx.db.reading() as tx:
        found = await load(tx, here, run)
        steps = await list_steps(tx, here.who.scope, found.id)
        artifacts = await list_artifacts(tx, here.who.scope, found.id)
    page = ArtifactsPage(
        head=head(here, found, steps, "artifacts"),
        artifacts=tuple(artifacts),
        live_url="" if found.state.over else f"/runs/{run}/live",
    )
    return renderer.page(request, "run_artifacts.html", page)


@get("/runs/{run:str}/artifacts/{idx:int}/{number:int}/{name:str}", opt=asks(Action.RUN_READ))
async def download_artifact(
    request: HttpRequest,
    parts: PartsArg,
    run: FromPath[str],
    idx: FromPath[int],
    number: FromPath[int],
    name: FromPath[str],
) -> Stream:
    """The bytes of an artifact; a folder's as one ZIP."""
    here = visitor.of(request)
    async with parts.ctx.db.reading() as tx:
        found = await load(tx, here, run)
        artifacts = await list_artifacts(tx, here.who.scope, found.id, idx)
    one = next((a for a in artifacts if (a.number, a.name) == (number, name)), None)
    if one is None:
        raise NotFound("there is no such artifact")
    if is_folder(one):
        return Stream(
            zip_of(parts.objects, one.key.rstrip("/") + "/"),
            media_type="application/zip",
            headers=HEADERS | _saved_as(f"{one.name}.zip"),
        )
    opened = await parts.objects.open(one.key)
    return Stream(
        opened.body,
        media_type="application/octet-stream",
        headers=HEADERS | _saved_as(one.name) | {"Content-Length": str(opened.stored.size)},
    )


@get("/runs/{run:str}/yaml", opt=asks(Action.RUN_READ))
async def yaml_page(
    request: HttpRequest, parts: PartsArg, renderer: RendererArg, run: FromPath[str]
) -> Response[str]:
    """The document as it was submitted, with the values of its parameters."""
    here = visitor.of(request)
    async with parts.ctx.db.reading() as tx:
        found = await load(tx, here, run)
        steps: list[StepRow] = await list_steps(tx, here.who.scope, found.id)
    return renderer.page(request, "run_yaml.html", YamlPage(head=head(here, found, steps, "yaml")))


@get("/runs/{run:str}/events", opt=asks(Action.RUN_READ))
async def events_page(
    request: HttpRequest, parts: PartsArg, renderer: RendererArg, run: FromPath[str]
) -> Response[str]:
    """Who did what, newest first."""
    here = visitor.of(request)
    text = request.query_params.get("before", "")
    before = int(text) if text.isascii() and text.isdigit() and len(text) < 19 else None
    async with parts.ctx.db.reading() as tx:
        found = await load(tx, here, run)
        steps = await list_steps(tx, here.who.scope, found.id)
        events = await list_events(tx, here.who.scope, found.id, before=before, limit=_EVENTS + 1)
    page = EventsPage(
        head=head(here, found, steps, "events"),
        events=tuple(events[:_EVENTS]),
        names={step.idx: step.name for step in steps},
        next=events[_EVENTS - 1].seq if len(events) > _EVENTS else None,
        live_url="" if found.state.over or before else f"/runs/{run}/live",
    )
    return renderer.page(request, "run_events.html", page)


def _saved_as(name: str) -> dict[str, str]:
    return {"Content-Disposition": f"attachment; filename*=UTF-8''{quote(name, safe='')}"}


def is_folder(artifact: ArtifactRow) -> bool:
    """Whether the artifact is a folder of files rather than one file."""
    return artifact.files != 1 or artifact.key.endswith("/")


ROUTES = (steps_page, artifacts_page, download_artifact, yaml_page, events_page)
