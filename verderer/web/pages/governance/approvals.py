"""Requests for access and quota: asking, deciding, and what became of them."""

from __future__ import annotations

from dataclasses import dataclass

from litestar import Response, get, post
from litestar.params import FromPath
from litestar.response import Redirect, Stream

from verderer.core.access import Action
from verderer.core.errors import Invalid, NotFound
from verderer.core.governance.definition import read_quota
from verderer.store.views.governance import ApprovalRow, list_approvals, list_groups
from verderer.store.views.projects import visible
from verderer.usecases.governance.approvals import Decision, Request, ask, decide, withdraw
from verderer.web import live, visitor
from verderer.web.gate import asks
from verderer.web.language import N_
from verderer.web.pages.governance.forms import last_moment, pairs
from verderer.web.parts import PartsArg
from verderer.web.render import RendererArg
from verderer.web.visitor import HttpRequest

_MOST = 200
WORDS = (N_("approved"), N_("denied"), N_("withdrawn"), N_("expired"))
"""Of what became of requests."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ApprovalsPage:
    """Context of `approvals.html`."""

    open: tuple[ApprovalRow, ...]
    past: tuple[ApprovalRow, ...]
    projects: tuple[str, ...]
    groups: tuple[str, ...]
    project: str = ""
    """What the form begins with."""
    group: str = ""
    live_url: str = "/governance/approvals/live"


@get("/governance/approvals", opt=asks(Action.APPROVAL_READ))
async def approvals_page(
    request: HttpRequest, parts: PartsArg, renderer: RendererArg
) -> Response[str]:
    """Those that wait, those that are decided, and a form to ask."""
    scope = visitor.of(request).who.scope
    async with parts.ctx.db.reading() as tx:
        found = await list_approvals(tx, scope, limit=_MOST)
        groups = await list_groups(tx, scope)
        projects = await visible(tx, scope, limit=_MOST)
    query = request.query_params
    page = ApprovalsPage(
        open=tuple(one for one in found if one.state == "requested"),
        past=tuple(one for one in found if one.state != "requested"),
        projects=tuple(project.name for project in projects),
        groups=tuple(group.name for group in groups),
        project=str(query.get("project", ""))[:63],
        group=str(query.get("group", ""))[:63],
    )
    return renderer.page(request, "approvals.html", page)


@get("/governance/approvals/live", opt=asks(Action.APPROVAL_READ))
async def approvals_news(parts: PartsArg) -> Stream:
    """Says when something was asked for or decided."""
    return live.stream(parts, changed=["governance"])


@post("/governance/approvals", opt=asks(Action.APPROVAL_ASK), status_code=200)
async def ask_for(request: HttpRequest, parts: PartsArg) -> Response[str]:
    """Ask for access, or for larger quotas."""
    form = await request.form()
    await ask(
        parts.ctx,
        visitor.of(request).who,
        Request(
            project=str(form.get("project", "")),
            resource_group=str(form.get("group", "")),
            reason=str(form.get("reason", "")),
            quota=read_quota(pairs(str(form.get("quota", "")), "quota")),
            until=last_moment(str(form.get("until", ""))),
        ),
    )
    return Redirect("/governance/approvals", status_code=303)


@post("/governance/approvals/{number:str}", opt=asks(Action.APPROVAL_READ), status_code=200)
async def change_request(
    request: HttpRequest, parts: PartsArg, number: FromPath[str]
) -> Response[str]:
    """Approve, deny or withdraw; the use case asks who may."""
    if not (number.isdigit() and len(number) < 10):
        raise NotFound("no such request")
    who = visitor.of(request).who
    form = await request.form()
    what, note = form.get("what"), str(form.get("note", ""))
    if what == "withdraw":
        await withdraw(parts.ctx, who, int(number))
    elif what in tuple(Decision):
        await decide(parts.ctx, who, int(number), Decision(str(what)), note=note)
    else:
        raise Invalid("there is no such change")
    return Redirect("/governance/approvals", status_code=303)


ROUTES = (approvals_page, approvals_news, ask_for, change_request)
