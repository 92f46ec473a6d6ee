"""/api/v1/projects: projects and who is in them."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any

import msgspec
from litestar import Request, Response, delete, get, post, put
from litestar.params import FromPath, JSONBody
from msgspec import Meta

from verderer.api.auth import ActorArg, ContextArg
from verderer.api.etags import tagged
from verderer.api.paging import USUAL, AfterArg, LimitArg, Page, page_of, read_cursor
from verderer.core.access import Action
from verderer.core.model.actor import Role
from verderer.core.model.people import Member, Project
from verderer.usecases.people.projects import (
    create_project,
    list_members,
    list_projects,
    put_member,
    read_project,
    remove_member,
)


class NewProject(msgspec.Struct, forbid_unknown_fields=True):
    """`name` stays for ever and stands in addresses; `title` is for people."""

    name: Annotated[str, Meta(max_length=63)]
    title: Annotated[str, Meta(max_length=200)] = ""
    group: Annotated[str, Meta(max_length=63, description="Its project group.")] = "default"


class ProjectOut(msgspec.Struct, frozen=True):
    """A project."""

    name: str
    title: str
    group: str
    created_at: datetime


class MemberOut(msgspec.Struct, frozen=True):
    """Somebody's role in a project."""

    email: str
    name: str
    role: Role
    active: bool


class RoleIn(msgspec.Struct, forbid_unknown_fields=True):
    """`member` runs workloads; `admin` also says who is in the project."""

    role: Role


@get("/projects", opt={"action": Action.PROJECT_LIST}, tags=["projects"])
async def projects(
    context: ContextArg, actor: ActorArg, limit: LimitArg = USUAL, after: AfterArg = ""
) -> Page[ProjectOut]:
    """The caller's own projects by name; a platform admin's are all."""
    start = read_cursor(after, str) or ""
    rows = await list_projects(context, actor, after=start, limit=limit + 1)
    return page_of(rows, limit, key=lambda p: p.name, show=show_project)


@post("/projects", opt={"action": Action.PROJECT_CREATE}, tags=["projects"])
async def make(context: ContextArg, actor: ActorArg, data: JSONBody[NewProject]) -> ProjectOut:
    """Make a project, whose first admin is the caller."""
    return show_project(
        await create_project(context, actor, name=data.name, title=data.title, group=data.group)
    )


@get("/projects/{name:str}", opt={"action": Action.PROJECT_READ}, tags=["projects"])
async def one(
    request: Request[Any, Any, Any], context: ContextArg, actor: ActorArg, name: FromPath[str]
) -> Response[ProjectOut]:
    """One project."""
    return tagged(request, show_project(await read_project(context, actor, name)))


@get("/projects/{name:str}/members", opt={"action": Action.PROJECT_READ}, tags=["projects"])
async def members(
    context: ContextArg,
    actor: ActorArg,
    name: FromPath[str],
    limit: LimitArg = USUAL,
    after: AfterArg = "",
) -> Page[MemberOut]:
    """Who is in the project, by e-mail address."""
    start = read_cursor(after, str) or ""
    rows = await list_members(context, actor, name, after=start, limit=limit + 1)
    return page_of(rows, limit, key=lambda m: m.email, show=_member)


@put(
    "/projects/{name:str}/members/{email:str}",
    opt={"action": Action.PROJECT_MEMBERS},
    tags=["projects"],
)
async def set_member(
    context: ContextArg,
    actor: ActorArg,
    name: FromPath[str],
    email: FromPath[str],
    data: JSONBody[RoleIn],
) -> MemberOut:
    """Take somebody in, or change their role.

    409 `last_admin` when nobody would be left to administer the project.
    """
    return _member(await put_member(context, actor, name, email=email, role=data.role))


@delete(
    "/projects/{name:str}/members/{email:str}",
    opt={"action": Action.PROJECT_MEMBERS},
    tags=["projects"],
)
async def drop_member(
    context: ContextArg, actor: ActorArg, name: FromPath[str], email: FromPath[str]
) -> None:
    """Take somebody out, at once. 409 `last_admin` as above."""
    await remove_member(context, actor, name, email=email)


def show_project(project: Project) -> ProjectOut:
    """What its members see of a project."""
    return ProjectOut(project.name, project.title, project.group, project.created_at)


def _member(member: Member) -> MemberOut:
    return MemberOut(member.email, member.name, member.role, member.active)


ROUTES = (projects, make, one, members, set_member, drop_member)
