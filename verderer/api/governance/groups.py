"""/api/v1/resource-groups: clusters with a quota and rules, and who may use them."""

from __future__ import annotations

from typing import Annotated, Any

from litestar import Request, Response, delete, get, post, put
from litestar.params import JSONBody, PathParameter, QueryParameter

from verderer.api.auth import ActorArg, ContextArg
from verderer.api.etags import tagged
from verderer.api.governance.documents import (
    definition,
    show_detail,
    show_entitlement,
    show_group,
    show_preview,
)
from verderer.api.paging import Page
from verderer.core.access import Action, require
from verderer.core.errors import NotFound
from verderer.core.governance.model import GrantKind
from verderer.core.model.actor import Actor
from verderer.store.views.governance import entitlements, list_groups, shares
from verderer.usecases.context import Context
from verderer.usecases.governance.grants import grant, take_back
from verderer.usecases.governance.groups import (
    change_group,
    create_group,
    preview_group,
    retire_group,
)
from verderer.usecases.people.projects import read_project
from verderer.wire.governance import (
    EntitlementOut,
    GrantIn,
    GroupDetailOut,
    GroupIn,
    GroupOut,
    NewGroup,
    PreviewOut,
)

GroupArg = Annotated[str, PathParameter(max_length=63, description="The resource group's name.")]
TeamArg = Annotated[str, PathParameter(max_length=63, description="The project group's name.")]
VersionArg = Annotated[
    int | None,
    QueryParameter(name="version", description="Refuse when the group is of another version."),
]
_READ = {"action": Action.GROUP_READ}
_MANAGE = {"action": Action.GROUP_MANAGE}
_TAGS = ["resource groups"]


@get("/resource-groups", opt=_READ, tags=_TAGS, summary="List resource groups")
async def groups(context: ContextArg, actor: ActorArg) -> Page[GroupOut]:
    """Every resource group with its quotas and use; the list has one page.

    Grants are shown to who is in a project of the group that has them.
    """
    async with context.db.reading() as tx:
        rows = await list_groups(tx, actor.scope)
    return Page([show_group(row) for row in rows])


@get("/resource-groups/{group:str}", opt=_READ, tags=_TAGS, summary="Read a resource group")
async def one(
    request: Request[Any, Any, Any], context: ContextArg, actor: ActorArg, group: GroupArg
) -> Response[GroupDetailOut]:
    """A resource group, and what each of the caller's projects holds of it."""
    return tagged(request, await _detail(context, actor, group))


@post("/resource-groups", opt=_MANAGE, tags=_TAGS, summary="Make a resource group")
async def make(context: ContextArg, actor: ActorArg, data: JSONBody[NewGroup]) -> GroupDetailOut:
    """No project group may use it until it is granted. 409 when the name is taken."""
    await create_group(context, actor, data.name, definition(data))
    return await _detail(context, actor, data.name)


@put("/resource-groups/{group:str}", opt=_MANAGE, tags=_TAGS, summary="Change a resource group")
async def change(
    context: ContextArg,
    actor: ActorArg,
    group: GroupArg,
    data: JSONBody[GroupIn],
    version: VersionArg = None,
) -> GroupDetailOut:
    """Replace everything but its name and grants.

    What runs goes on; a quota below what is reserved sinks to what was asked for as work ends.
    409 `changed_meanwhile` when it is not of the `version` that was read.
    """
    await change_group(context, actor, group, definition(data), version=version)
    return await _detail(context, actor, group)


@post(
    "/resource-groups/{group:str}/preview",
    opt=_MANAGE,
    tags=_TAGS,
    summary="What a change would do",
    status_code=200,
)
async def look_ahead(
    context: ContextArg, actor: ActorArg, group: GroupArg, data: JSONBody[GroupIn]
) -> PreviewOut:
    """The effect of the same body on what runs and waits; nothing is changed."""
    return show_preview(await preview_group(context, actor, group, definition(data)))


@delete("/resource-groups/{group:str}", opt=_MANAGE, tags=_TAGS, summary="Retire a resource group")
async def retire(context: ContextArg, actor: ActorArg, group: GroupArg) -> None:
    """Take it out for good. 409 `group_busy` while runs of it are not over."""
    await retire_group(context, actor, group)


@put(
    "/resource-groups/{group:str}/grants/{project_group:str}",
    opt=_MANAGE,
    tags=_TAGS,
    summary="Grant a resource group",
)
async def give(
    context: ContextArg,
    actor: ActorArg,
    group: GroupArg,
    project_group: TeamArg,
    data: JSONBody[GrantIn],
) -> GroupDetailOut:
    """Let the projects of a group use it. A new default makes the one before optional."""
    kind = GrantKind(data.kind)
    await grant(context, actor, group, project_group, kind=kind, until=data.expires_at)
    return await _detail(context, actor, group)


@delete(
    "/resource-groups/{group:str}/grants/{project_group:str}",
    opt=_MANAGE,
    tags=_TAGS,
    summary="Take a grant back",
)
async def take(
    context: ContextArg, actor: ActorArg, group: GroupArg, project_group: TeamArg
) -> None:
    """What runs goes on; what waits waits on and says why."""
    await take_back(context, actor, group, project_group)


@get(
    "/projects/{name:str}/resource-groups",
    opt={"action": Action.PROJECT_READ},
    tags=_TAGS,
    summary="What a project may use",
)
async def of_project(
    context: ContextArg, actor: ActorArg, name: Annotated[str, PathParameter(max_length=63)]
) -> Page[EntitlementOut]:
    """Every resource group: the default first, then those granted, then those to ask for."""
    project = await read_project(context, actor, name)
    require(actor, Action.PROJECT_READ, project=project.id)
    async with context.db.reading() as tx:
        rows = await entitlements(tx, actor.scope, name)
    return Page([show_entitlement(row) for row in rows])


async def _detail(context: Context, actor: Actor, name: str) -> GroupDetailOut:
    async with context.db.reading() as tx:
        found = await list_groups(tx, actor.scope, name)
        if not found:
            raise NotFound("no such resource group")
        return show_detail(found[0], await shares(tx, actor.scope, found[0].id))


ROUTES = (groups, one, make, change, look_ahead, retire, give, take, of_project)
