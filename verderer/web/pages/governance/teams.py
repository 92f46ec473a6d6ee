"""Project groups: teams, who is in them, and which projects are theirs."""

from __future__ import annotations

from dataclasses import dataclass

from litestar import Response, get, post
from litestar.params import FromPath
from litestar.response import Redirect

from verderer.core.access import Action
from verderer.core.errors import Invalid
from verderer.core.model.people import Member, ProjectGroup
from verderer.store.views import teams as views
from verderer.store.views.projects import visible
from verderer.usecases.people import teams
from verderer.web import visitor
from verderer.web.gate import asks
from verderer.web.pages.projects import role_of
from verderer.web.parts import PartsArg
from verderer.web.render import RendererArg
from verderer.web.visitor import HttpRequest

_MOST = 500


@dataclass(frozen=True, slots=True, kw_only=True)
class TeamsPage:
    """Context of `teams.html`."""

    teams: tuple[ProjectGroup, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class TeamPage:
    """Context of `team.html`."""

    team: ProjectGroup
    members: tuple[Member, ...]
    others: tuple[str, ...]
    """Projects of other groups, for a platform admin to move here."""


@get("/governance/teams", opt=asks(Action.TEAM_READ))
async def teams_page(request: HttpRequest, parts: PartsArg, renderer: RendererArg) -> Response[str]:
    """Those of the reader's projects."""
    async with parts.ctx.db.reading() as tx:
        found = await views.visible(tx, visitor.of(request).who.scope, limit=_MOST)
    return renderer.page(request, "teams.html", TeamsPage(teams=tuple(found)))


@post("/governance/teams", opt=asks(Action.TEAM_MANAGE), status_code=200)
async def make_team(request: HttpRequest, parts: PartsArg) -> Response[str]:
    """Make one and go to its page."""
    form = await request.form()
    name = str(form.get("name", "")).strip()
    who = visitor.of(request).who
    await teams.create_team(parts.ctx, who, name=name, title=str(form.get("title", "")))
    return Redirect(f"/governance/teams/{name}", status_code=303)


@get("/governance/teams/{name:str}", opt=asks(Action.TEAM_READ))
async def team_page(
    request: HttpRequest, parts: PartsArg, renderer: RendererArg, name: FromPath[str]
) -> Response[str]:
    """One of them with its projects and members."""
    who = visitor.of(request).who
    async with parts.ctx.db.reading() as tx:
        team = await views.by_name(tx, who.scope, name)
        members = await views.members(tx, who.scope, name, limit=_MOST)
        all_projects = await visible(tx, who.scope, limit=_MOST) if who.platform_admin else []
    others = tuple(p.name for p in all_projects if p.group != name)
    page = TeamPage(team=team, members=tuple(members), others=others)
    return renderer.page(request, "team.html", page)


@post("/governance/teams/{name:str}", opt=asks(Action.TEAM_MANAGE), status_code=200)
async def change_team(request: HttpRequest, parts: PartsArg, name: FromPath[str]) -> Response[str]:
    """Members in and out, a project moved here, or the group deleted."""
    who = visitor.of(request).who
    form = await request.form()
    email = str(form.get("email", "")).strip()
    match form.get("what"):
        case "member":
            role = role_of(str(form.get("role", "")))
            await teams.put_team_member(parts.ctx, who, name, email=email, role=role)
        case "remove":
            await teams.remove_team_member(parts.ctx, who, name, email=email)
        case "move":
            await teams.move_project(parts.ctx, who, str(form.get("project", "")), name)
        case "delete":
            await teams.delete_team(parts.ctx, who, name)
            return Redirect("/governance/teams", status_code=303)
        case _:
            raise Invalid("there is no such change")
    return Redirect(f"/governance/teams/{name}", status_code=303)


ROUTES = (teams_page, make_team, team_page, change_team)
