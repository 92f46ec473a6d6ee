"""Projects and who works in them."""

from __future__ import annotations

from dataclasses import dataclass

from litestar import Response, get, post
from litestar.params import FromPath
from litestar.response import Redirect

from verderer.core.access import Action
from verderer.core.errors import Invalid, Problem
from verderer.core.model.actor import Role
from verderer.core.model.people import Member, Project
from verderer.core.model.run import RunState
from verderer.store.views.governance import EntitlementRow, entitlements
from verderer.store.views.runs import run_counts
from verderer.store.views.teams import visible
from verderer.usecases.people import projects
from verderer.web import visitor
from verderer.web.gate import asks
from verderer.web.parts import PartsArg
from verderer.web.render import RendererArg
from verderer.web.visitor import HttpRequest

_MOST = 500


@dataclass(frozen=True, slots=True)
class ProjectLine:
    """A project with its numbers."""

    project: Project
    counts: dict[RunState, int]
    role: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ProjectsPage:
    """Context of `projects.html`."""

    lines: tuple[ProjectLine, ...]
    teams: tuple[str, ...]
    may_create: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class ProjectPage:
    """Context of `project.html`."""

    project: Project
    counts: dict[RunState, int]
    members: tuple[Member, ...]
    entitlements: tuple[EntitlementRow, ...]
    may_manage: bool
    may_ask: bool


@get("/projects", opt=asks(Action.PROJECT_LIST))
async def projects_page(
    request: HttpRequest, parts: PartsArg, renderer: RendererArg
) -> Response[str]:
    """Those that the reader belongs to."""
    who = visitor.of(request).who
    found = await projects.list_projects(parts.ctx, who, limit=_MOST)
    lines = []
    async with parts.ctx.db.reading() as tx:
        for project in found:
            counts = await run_counts(tx, who.scope, project.name)
            role = who.roles.get(project.id, "")
            lines.append(ProjectLine(project, counts, str(role)))
        teams = await visible(tx, who.scope, limit=_MOST) if who.platform_admin else []
    names = tuple(team.name for team in teams)
    page = ProjectsPage(lines=tuple(lines), teams=names, may_create=who.platform_admin)
    return renderer.page(request, "projects.html", page)


@post("/projects", opt=asks(Action.PROJECT_CREATE))
async def create_project(request: HttpRequest, parts: PartsArg) -> Response[str]:
    """Make one; its maker becomes nothing in it but may see it as a platform admin."""
    form = await request.form()
    made = await projects.create_project(
        parts.ctx,
        visitor.of(request).who,
        group=str(form.get("group", "")) or "default",
        name=str(form.get("name", "")).strip(),
        title=str(form.get("title", "")),
    )
    return Redirect(f"/projects/{made.name}", status_code=303)


@get("/projects/{name:str}", opt=asks(Action.PROJECT_READ))
async def project_page(
    request: HttpRequest, parts: PartsArg, renderer: RendererArg, name: FromPath[str]
) -> Response[str]:
    """One of them with its members."""
    here = visitor.of(request)
    project = await projects.read_project(parts.ctx, here.who, name)
    members = await projects.list_members(parts.ctx, here.who, name, limit=_MOST)
    async with parts.ctx.db.reading() as tx:
        counts = await run_counts(tx, here.who.scope, name)
        groups = await entitlements(tx, here.who.scope, name)
    page = ProjectPage(
        project=project,
        counts=counts,
        members=tuple(members),
        entitlements=tuple(groups),
        may_ask=here.may(Action.APPROVAL_ASK, project=project.id),
        may_manage=here.may(Action.PROJECT_MEMBERS, project=project.id),
    )
    return renderer.page(request, "project.html", page)


@post("/projects/{name:str}/members", opt=asks(Action.PROJECT_MEMBERS))
async def put_member(request: HttpRequest, parts: PartsArg, name: FromPath[str]) -> Response[str]:
    """Take somebody in, or change what they are."""
    form = await request.form()
    await projects.put_member(
        parts.ctx,
        visitor.of(request).who,
        name,
        email=str(form.get("email", "")).strip(),
        role=role_of(str(form.get("role", ""))),
    )
    return Redirect(f"/projects/{name}", status_code=303)


@post("/projects/{name:str}/members/remove", opt=asks(Action.PROJECT_MEMBERS))
async def remove_member(
    request: HttpRequest, parts: PartsArg, name: FromPath[str]
) -> Response[str]:
    """Let somebody go; what they submitted stays."""
    form = await request.form()
    await projects.remove_member(
        parts.ctx, visitor.of(request).who, name, email=str(form.get("email", ""))
    )
    return Redirect(f"/projects/{name}", status_code=303)


def role_of(text: str) -> Role:
    try:
        return Role(text)
    except ValueError:
        problem = Problem(field="role", message="must be member or admin")
        raise Invalid("there is no such role", problems=[problem]) from None


ROUTES = (projects_page, create_project, project_page, put_member, remove_member)
