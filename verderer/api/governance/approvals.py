"""/api/v1/approvals: asking for access or quota, and deciding."""

from __future__ import annotations

from typing import Annotated

from litestar import get, post
from litestar.params import JSONBody, PathParameter, QueryParameter

from verderer.api.auth import ActorArg, ContextArg
from verderer.api.governance.documents import show_approval
from verderer.api.paging import USUAL, AfterArg, LimitArg, Page, page_of, read_cursor
from verderer.core.access import Action
from verderer.core.errors import NotFound
from verderer.core.governance.definition import read_quota
from verderer.core.model.actor import Actor
from verderer.store.views.governance import list_approvals
from verderer.usecases.context import Context
from verderer.usecases.governance.approvals import Decision, Request, ask, decide, withdraw
from verderer.wire.governance import ApprovalOut, AskedOut, DecisionIn, RequestIn

NumberArg = Annotated[int, PathParameter(ge=1, le=2**31 - 1, description="The request's number.")]
StateArg = Annotated[
    str | None,
    QueryParameter(
        name="state", description="Of this state alone, such as requested.", max_length=20
    ),
]
_TAGS = ["approvals"]
_DECIDE = {"action": Action.APPROVAL_DECIDE}


@get("/approvals", opt={"action": Action.APPROVAL_READ}, tags=_TAGS, summary="List requests")
async def requests(
    context: ContextArg,
    actor: ActorArg,
    in_state: StateArg = None,
    limit: LimitArg = USUAL,
    after: AfterArg = "",
) -> Page[ApprovalOut]:
    """Requests of the caller's project groups, the newest first."""
    before = read_cursor(after, int)
    async with context.db.reading() as tx:
        rows = await list_approvals(tx, actor.scope, state=in_state, before=before, limit=limit + 1)
    return page_of(rows, limit, key=lambda r: r.id, show=show_approval)


@post("/approvals", opt={"action": Action.APPROVAL_ASK}, tags=_TAGS, summary="Ask for something")
async def request(context: ContextArg, actor: ActorArg, data: JSONBody[RequestIn]) -> AskedOut:
    """Ask that the project's group may use a resource group, or for larger quotas of one.

    409 when the same was asked for and is not decided.
    """
    number = await ask(
        context,
        actor,
        Request(
            project=data.project,
            resource_group=data.resource_group,
            reason=data.reason,
            quota=read_quota(data.quota),
            until=data.expires_at,
        ),
    )
    return AskedOut(id=number)


@post(
    "/approvals/{number:int}/approve", opt=_DECIDE, tags=_TAGS, summary="Approve", status_code=200
)
async def approve(
    context: ContextArg, actor: ActorArg, number: NumberArg, data: JSONBody[DecisionIn]
) -> ApprovalOut:
    """It holds from now on. 409 `decided_already`."""
    await decide(context, actor, number, Decision.APPROVED, note=data.note)
    return await _one(context, actor, number)


@post("/approvals/{number:int}/deny", opt=_DECIDE, tags=_TAGS, summary="Deny", status_code=200)
async def deny(
    context: ContextArg, actor: ActorArg, number: NumberArg, data: JSONBody[DecisionIn]
) -> ApprovalOut:
    """409 `decided_already`."""
    await decide(context, actor, number, Decision.DENIED, note=data.note)
    return await _one(context, actor, number)


@post(
    "/approvals/{number:int}/withdraw",
    opt={"action": Action.APPROVAL_ASK},
    tags=_TAGS,
    summary="Take one's request back",
    status_code=200,
)
async def take_back(context: ContextArg, actor: ActorArg, number: NumberArg) -> ApprovalOut:
    """Whoever asked may, and a platform admin. 409 `decided_already`."""
    await withdraw(context, actor, number)
    return await _one(context, actor, number)


async def _one(context: Context, actor: Actor, number: int) -> ApprovalOut:
    async with context.db.reading() as tx:
        rows = await list_approvals(tx, actor.scope, number=number)
    if not rows:
        raise NotFound("no such request")
    return show_approval(rows[0])


ROUTES = (requests, request, approve, deny, take_back)
