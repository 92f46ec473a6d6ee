"""The first page: what needs me, what runs, what waits and why, the fleet."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from litestar import Response, get
from litestar.response import Stream

from verderer.core.access import Action
from verderer.core.model.run import RunState
from verderer.store.views import overview as views
from verderer.store.views.clusters import ClusterRow
from verderer.store.views.governance import ApprovalRow, list_approvals
from verderer.store.views.overview import Silent
from verderer.store.views.runs import RunRow
from verderer.store.views.visible import ProjectRow, list_projects
from verderer.web import live, visitor
from verderer.web.formats import Formats
from verderer.web.gate import asks
from verderer.web.parts import PartsArg
from verderer.web.reasons import Line, explain_all
from verderer.web.render import RendererArg
from verderer.web.visitor import HttpRequest

_MOST_ASKED = 10
_MOST_TOPICS = 200


@dataclass(frozen=True, slots=True)
class WaitingLine:
    """Steps of one project that wait for the same reason."""

    project: str
    steps: int
    asks: str
    reason: Line | None
    never: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class OverviewPage:
    """Context of `overview.html`."""

    project: str
    projects: tuple[ProjectRow, ...]
    counts: Mapping[RunState, int]
    running: tuple[RunRow, ...]
    failed: tuple[RunRow, ...]
    recent: tuple[RunRow, ...]
    waiting: tuple[WaitingLine, ...]
    waiting_steps: int
    clusters: tuple[ClusterRow, ...]
    silent: tuple[Silent, ...]
    asked: tuple[ApprovalRow, ...]
    """Requests that the reader can decide about."""
    live_url: str = "/live"


@get("/", opt=asks(Action.PROJECT_LIST))
async def overview_page(
    request: HttpRequest, parts: PartsArg, renderer: RendererArg
) -> Response[str]:
    """Everything at one glance."""
    here = visitor.of(request)
    scope = here.who.scope
    async with parts.ctx.db.reading() as tx:
        projects = await list_projects(tx, scope)
        project = chosen(here.project, projects)
        found = await views.overview(tx, scope, project or None, now=parts.ctx.clock())
        asked = []
        if here.who.platform_admin:
            asked = await list_approvals(tx, scope, state="requested", limit=_MOST_ASKED)
    names = {p.id: p.name for p in projects}
    formats = Formats(here.language)
    page = OverviewPage(
        project=project,
        projects=tuple(projects),
        counts=found.counts,
        running=found.running,
        failed=found.failed,
        recent=found.recent,
        waiting=tuple(_line(g, names, formats) for g in found.waiting),
        waiting_steps=sum(g.steps for g in found.waiting),
        clusters=found.clusters,
        silent=found.silent,
        asked=tuple(asked),
    )
    return renderer.page(request, "overview.html", page)


@get("/live", opt=asks(Action.PROJECT_LIST))
async def overview_news(request: HttpRequest, parts: PartsArg) -> Stream:
    """Says when something changed in the reader's projects."""
    return live.stream(parts, changed=[*await topics_of(request, parts), "governance"])


async def topics_of(request: HttpRequest, parts: PartsArg) -> list[str]:
    """What to listen to for lists of runs: the first two hundred projects that the reader sees."""
    scope = visitor.of(request).who.scope
    async with parts.ctx.db.reading() as tx:
        projects = await list_projects(tx, scope)
    return [f"project:{p.id}" for p in projects[:_MOST_TOPICS]]


def chosen(wish: str, projects: list[ProjectRow]) -> str:
    """The project that was chosen last, if it is still there for the reader."""
    return wish if any(p.name == wish for p in projects) else ""


def _line(group: views.WaitingGroup, names: Mapping[int, str], formats: Formats) -> WaitingLine:
    lines = explain_all(group.reasons, formats)
    hopeful = [line for line in lines if not line.never]
    return WaitingLine(
        project=names.get(group.project_id, ""),
        steps=group.steps,
        asks=formats.asked(group.requests),
        reason=next(iter(hopeful or lines), None),
        never=bool(lines) and not hopeful,
    )


ROUTES = (overview_page, overview_news)
