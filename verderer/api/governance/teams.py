"""/api/v1/project-groups: teams, their members, and which projects are theirs."""

from __future__ import annotations

from typing import Annotated

from litestar import delete, get, post, put
from litestar.params import FromPath, JSONBody, PathParameter

from verderer.api.auth import ActorArg, ContextArg
from verderer.api.paging import USUAL, AfterArg, LimitArg, Page, page_of, read_cursor
from verderer.api.projects import MemberOut, RoleIn
from verderer.core.access import Action
from verderer.core.model.people import Member, ProjectGroup
from verderer.store.views.teams import by_name, members, visible
from verderer.usecases.people.teams import (
    create_team,
    delete_team,
    move_project,
    put_team_member,
    remove_team_member,
)
from verderer.wire.governance import NewTeam, TeamOut

TeamArg = Annotated[str, PathParameter(max_length=63, description="The project group's name.")]
_READ = {"action": Action.TEAM_READ}
_MANAGE = {"action": Action.TEAM_MANAGE}
_TAGS = ["project groups"]


@get("/project-groups", opt=_READ, tags=_TAGS, summary="List project groups")
async def teams(
    context: ContextArg, actor: ActorArg, limit: LimitArg = USUAL, after: AfterArg = ""
) -> Page[TeamOut]:
    """Those of the caller's projects; a platform admin's are all."""
    start = read_cursor(after, str) or ""
    async with context.db.reading() as tx:
        rows = await visible(tx, actor.scope, after=start, limit=limit + 1)
    return page_of(rows, limit, key=lambda g: g.name, show=_team)


@post("/project-groups", opt=_MANAGE, tags=_TAGS, summary="Make a project group")
async def make(context: ContextArg, actor: ActorArg, data: JSONBody[NewTeam]) -> TeamOut:
    """It may use no resource group until one is granted. 409 when the name is taken."""
    await create_team(context, actor, name=data.name, title=data.title)
    async with context.db.reading() as tx:
        return _team(await by_name(tx, actor.scope, data.name))


@get("/project-groups/{group:str}", opt=_READ, tags=_TAGS, summary="Read a project group")
async def one(context: ContextArg, actor: ActorArg, group: TeamArg) -> TeamOut:
    """A group with those of its projects that the caller may see."""
    async with context.db.reading() as tx:
        return _team(await by_name(tx, actor.scope, group))


@delete("/project-groups/{group:str}", opt=_MANAGE, tags=_TAGS, summary="Delete a project group")
async def remove(context: ContextArg, actor: ActorArg, group: TeamArg) -> None:
    """409 `group_not_empty` while projects belong to it."""
    await delete_team(context, actor, group)


@put(
    "/project-groups/{group:str}/projects/{project:str}",
    opt=_MANAGE,
    tags=_TAGS,
    summary="Move a project",
    status_code=200,
)
async def move(
    context: ContextArg, actor: ActorArg, group: TeamArg, project: FromPath[str]
) -> TeamOut:
    """Give a project to this group; its members and resource groups change with that."""
    await move_project(context, actor, project, group)
    async with context.db.reading() as tx:
        return _team(await by_name(tx, actor.scope, group))


@get("/project-groups/{group:str}/members", opt=_READ, tags=_TAGS, summary="Who is in a group")
async def people(
    context: ContextArg,
    actor: ActorArg,
    group: TeamArg,
    limit: LimitArg = USUAL,
    after: AfterArg = "",
) -> Page[MemberOut]:
    """Who has a role in every project of the group, by e-mail address."""
    start = read_cursor(after, str) or ""
    async with context.db.reading() as tx:
        await by_name(tx, actor.scope, group)
        rows = await members(tx, actor.scope, group, after=start, limit=limit + 1)
    return page_of(rows, limit, key=lambda m: m.email, show=_member)


@put(
    "/project-groups/{group:str}/members/{email:str}",
    opt=_MANAGE,
    tags=_TAGS,
    summary="Give a role in a group",
)
async def set_member(
    context: ContextArg,
    actor: ActorArg,
    group: TeamArg,
    email: FromPath[str],
    data: JSONBody[RoleIn],
) -> MemberOut:
    """The role counts in every project of the group, those made later too."""
    return _member(await put_team_member(context, actor, group, email=email, role=data.role))


@delete(
    "/project-groups/{group:str}/members/{email:str}",
    opt=_MANAGE,
    tags=_TAGS,
    summary="Take somebody out of a group",
)
async def drop_member(
    context: ContextArg, actor: ActorArg, group: TeamArg, email: FromPath[str]
) -> None:
    """At once; roles in single projects stay."""
    await remove_team_member(context, actor, group, email=email)


def _team(group: ProjectGroup) -> TeamOut:
    return TeamOut(
        name=group.name,
        title=group.title,
        created_at=group.created_at,
        projects=list(group.projects),
    )


def _member(member: Member) -> MemberOut:
    return MemberOut(member.email, member.name, member.role, member.active)


ROUTES = (teams, make, one, remove, move, people, set_member, drop_member)
