"""Resource groups: what each has and holds, who may use it, and changing it with a look ahead."""

from __future__ import annotations

from dataclasses import dataclass, replace

from litestar import Response, get, post
from litestar.params import FromPath
from litestar.response import Redirect, Stream

from verderer.core.access import Action
from verderer.core.errors import Invalid, NotFound, Refusal
from verderer.core.governance.model import GrantKind
from verderer.core.governance.preview import Preview
from verderer.core.model.actor import Scope
from verderer.store.database import Tx
from verderer.store.views.clusters import list_clusters
from verderer.store.views.governance import GroupRow, list_approvals, list_groups, shares
from verderer.store.views.teams import visible
from verderer.usecases.governance.grants import grant, take_back
from verderer.usecases.governance.groups import (
    change_group,
    create_group,
    preview_group,
    retire_group,
)
from verderer.web import live, visitor
from verderer.web.errors import status_of
from verderer.web.gate import asks
from verderer.web.language import N_
from verderer.web.pages.governance.forms import GroupForm, form_of, group_form, last_moment
from verderer.web.parts import PartsArg
from verderer.web.render import RendererArg
from verderer.web.visitor import HttpRequest

WORDS = (N_("default"), N_("optional"))
"""Of grants."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupsPage:
    """Context of `groups.html`."""

    groups: tuple[GroupRow, ...]
    asked: int
    """Requests that wait for a decision."""
    live_url: str = "/governance/live"


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupPage:
    """Context of `group.html`."""

    group: GroupRow
    shares: tuple[tuple[str, str, int], ...]
    teams: tuple[str, ...]
    """Project groups that a platform admin can grant it to."""
    live_url: str = "/governance/live"


@dataclass(frozen=True, slots=True, kw_only=True)
class EditPage:
    """Context of `group_edit.html`."""

    form: GroupForm
    clusters: tuple[str, ...]
    fresh: bool
    preview: Preview | None = None
    trouble: str = ""


@get("/governance", opt=asks(Action.GROUP_READ))
async def groups_page(
    request: HttpRequest, parts: PartsArg, renderer: RendererArg
) -> Response[str]:
    """All of them."""
    scope = visitor.of(request).who.scope
    async with parts.ctx.db.reading() as tx:
        found = await list_groups(tx, scope)
        asked = await list_approvals(tx, scope, state="requested", limit=100)
    page = GroupsPage(groups=tuple(found), asked=len(asked))
    return renderer.page(request, "groups.html", page)


@get("/governance/live", opt=asks(Action.GROUP_READ))
async def governance_news(parts: PartsArg) -> Stream:
    """Says when rules or clusters changed."""
    return live.stream(parts, changed=["governance", "clusters"])


@get("/governance/groups/new", opt=asks(Action.GROUP_MANAGE))
async def new_page(request: HttpRequest, parts: PartsArg, renderer: RendererArg) -> Response[str]:
    """Ask what it shall be."""
    return await _edit(
        request, parts, renderer, EditPage(form=GroupForm(), clusters=(), fresh=True)
    )


@post("/governance/groups/new", opt=asks(Action.GROUP_MANAGE), status_code=200)
async def make_group(request: HttpRequest, parts: PartsArg, renderer: RendererArg) -> Response[str]:
    """Make it and go to its page, where it is granted."""
    form = group_form(await request.form())
    try:
        await create_group(parts.ctx, visitor.of(request).who, form.name, form.definition())
    except Refusal as e:
        again = _refused(EditPage(form=form, clusters=(), fresh=True), e)
        return await _edit(request, parts, renderer, again, status_of(e))
    return Redirect(f"/governance/groups/{form.name}", status_code=303)


@get("/governance/groups/{name:str}", opt=asks(Action.GROUP_READ))
async def group_page(
    request: HttpRequest, parts: PartsArg, renderer: RendererArg, name: FromPath[str]
) -> Response[str]:
    """One of them."""
    who = visitor.of(request).who
    async with parts.ctx.db.reading() as tx:
        group = await _read(tx, who.scope, name)
        held = await shares(tx, who.scope, group.id)
        teams = await visible(tx, who.scope, limit=1000) if who.platform_admin else []
    page = GroupPage(group=group, shares=tuple(held), teams=tuple(team.name for team in teams))
    return renderer.page(request, "group.html", page)


@get("/governance/groups/{name:str}/edit", opt=asks(Action.GROUP_MANAGE))
async def edit_page(
    request: HttpRequest, parts: PartsArg, renderer: RendererArg, name: FromPath[str]
) -> Response[str]:
    """Its form."""
    async with parts.ctx.db.reading() as tx:
        group = await _read(tx, visitor.of(request).who.scope, name)
    page = EditPage(form=form_of(group), clusters=(), fresh=False)
    return await _edit(request, parts, renderer, page)


@post("/governance/groups/{name:str}/edit", opt=asks(Action.GROUP_MANAGE), status_code=200)
async def save_group(
    request: HttpRequest, parts: PartsArg, renderer: RendererArg, name: FromPath[str]
) -> Response[str]:
    """Show what it would do; once that was seen, do it."""
    who = visitor.of(request).who
    sent = await request.form()
    form = replace(group_form(sent), name=name)
    page = EditPage(form=form, clusters=(), fresh=False)
    try:
        wanted = form.definition()
        if sent.get("what") == "save":
            await change_group(parts.ctx, who, name, wanted, version=form.version)
            return Redirect(f"/governance/groups/{name}", status_code=303)
        seen = await preview_group(parts.ctx, who, name, wanted)
    except Refusal as e:
        return await _edit(request, parts, renderer, _refused(page, e), status_of(e))
    return await _edit(request, parts, renderer, replace(page, preview=seen))


@post("/governance/groups/{name:str}/grants", opt=asks(Action.GROUP_MANAGE), status_code=200)
async def change_grant(request: HttpRequest, parts: PartsArg, name: FromPath[str]) -> Response[str]:
    """Grant it to a project group, or take that back."""
    who = visitor.of(request).who
    form = await request.form()
    team = str(form.get("team", ""))
    if form.get("what") == "take":
        await take_back(parts.ctx, who, name, team)
    else:
        kind = GrantKind.DEFAULT if form.get("kind") == "default" else GrantKind.OPTIONAL
        until = last_moment(str(form.get("until", "")))
        await grant(parts.ctx, who, name, team, kind=kind, until=until)
    return Redirect(f"/governance/groups/{name}", status_code=303)


@post("/governance/groups/{name:str}/retire", opt=asks(Action.GROUP_MANAGE), status_code=200)
async def retire(request: HttpRequest, parts: PartsArg, name: FromPath[str]) -> Response[str]:
    """Take it out for good."""
    form = await request.form()
    if str(form.get("typed", "")).strip() != name:
        raise Invalid("type the group's name, so that it is no slip")
    await retire_group(parts.ctx, visitor.of(request).who, name)
    return Redirect("/governance", status_code=303)


async def _edit(
    request: HttpRequest,
    parts: PartsArg,
    renderer: RendererArg,
    page: EditPage,
    status: int = 200,
) -> Response[str]:
    async with parts.ctx.db.reading() as tx:
        found = await list_clusters(tx, visitor.of(request).who.scope)
    page = replace(page, clusters=tuple(one.cluster_id for one in found))
    return renderer.page(request, "group_edit.html", page, status=status)


def _refused(page: EditPage, e: Refusal) -> EditPage:
    problems = tuple(e.problems) if isinstance(e, Invalid) else ()
    return replace(page, form=replace(page.form, problems=problems), trouble=e.message)


async def _read(tx: Tx, scope: Scope, name: str) -> GroupRow:
    found = await list_groups(tx, scope, name)
    if not found:
        raise NotFound("no such resource group")
    return found[0]


ROUTES = (
    groups_page,
    governance_news,
    new_page,
    make_group,
    group_page,
    edit_page,
    save_group,
    change_grant,
    retire,
)
