"""Projects and who is in them."""

from __future__ import annotations

from verderer.core.access import Action, require
from verderer.core.errors import Conflict, NotFound
from verderer.core.labels import check_name, check_title
from verderer.core.model.actor import Actor, ActorKind, Role
from verderer.core.model.people import Member, Project
from verderer.store.tables import audit, people
from verderer.store.tables import projects as table
from verderer.store.views import projects as views
from verderer.usecases.context import Context


async def create_project(
    ctx: Context, actor: Actor, *, name: str, title: str = "", group: str = "default"
) -> Project:
    """Make a project in a project group; a person who makes one is its first admin.

    Raises:
        NotAllowed: the actor is not a platform admin.
        NotFound: there is no such project group.
        Invalid: the name or the title is not acceptable.
        Conflict: the name is taken.
    """
    require(actor, Action.PROJECT_CREATE)
    check_name(name, field="name")
    shown = check_title(title, field="title")
    async with ctx.db.transaction() as tx:
        project = await table.add(tx, name=name, title=shown, group=group)
        if actor.kind is ActorKind.USER:
            await table.put_member(tx, project.id, actor.id, Role.ADMIN)
        detail = {"group": group}
        entry = audit.Entry(
            action="project.created", project=project.id, object=name, detail=detail
        )
        await audit.add(tx, actor, [entry])
    ctx.wakeups.wake(["auth"])
    return project


async def list_projects(
    ctx: Context, actor: Actor, *, after: str = "", limit: int = 50
) -> list[Project]:
    """Those that the actor may see, by name, beginning behind the name `after`."""
    require(actor, Action.PROJECT_LIST)
    async with ctx.db.reading() as connection:
        return await views.visible(connection, actor.scope, after=after, limit=limit)


async def read_project(ctx: Context, actor: Actor, name: str) -> Project:
    """Raise `NotFound` when there is none, or it is not the actor's to know about."""
    return await _named(ctx, actor, name, Action.PROJECT_READ)


async def list_members(
    ctx: Context, actor: Actor, name: str, *, after: str = "", limit: int = 50
) -> list[Member]:
    """Its members by e-mail address, beginning behind the address `after`."""
    project = await _named(ctx, actor, name, Action.PROJECT_READ)
    async with ctx.db.reading() as connection:
        return await views.members(connection, actor.scope, project.id, after=after, limit=limit)


async def put_member(ctx: Context, actor: Actor, name: str, *, email: str, role: Role) -> Member:
    """Give somebody a role in the project; nothing happens when they have it.

    Raises:
        NotFound: there is no such project that the actor may know about, or no such user.
        NotAllowed: the actor is not an admin of it.
        Conflict: nobody would be left as its admin.
    """
    project = await _named(ctx, actor, name, Action.PROJECT_MEMBERS)
    async with ctx.db.transaction() as tx:
        await table.lock(tx, project.id)
        user = await people.user_by_email(tx, email.lower())
        if role is not Role.ADMIN and await table.is_only_admin(tx, project.id, user.id):
            raise _last_admin(name)
        if await table.put_member(tx, project.id, user.id, role):
            detail = {"user": user.email, "role": role}
            entry = audit.Entry(
                action="project.member_set", project=project.id, object=name, detail=detail
            )
            await audit.add(tx, actor, [entry])
    ctx.wakeups.wake(["auth"])
    return Member(user=user.id, email=user.email, name=user.name, role=role, active=user.active)


async def remove_member(ctx: Context, actor: Actor, name: str, *, email: str) -> None:
    """Take somebody out of the project, at once.

    Raises:
        NotFound: there is no such project that the actor may know about, or no such member.
        NotAllowed: the actor is not an admin of it.
        Conflict: nobody would be left as its admin.
    """
    project = await _named(ctx, actor, name, Action.PROJECT_MEMBERS)
    async with ctx.db.transaction() as tx:
        await table.lock(tx, project.id)
        user = await people.user_by_email(tx, email.lower())
        if await table.is_only_admin(tx, project.id, user.id):
            raise _last_admin(name)
        if not await table.remove_member(tx, project.id, user.id):
            raise NotFound(f"{user.email} is not a member of {name}")
        detail = {"user": user.email}
        entry = audit.Entry(
            action="project.member_removed", project=project.id, object=name, detail=detail
        )
        await audit.add(tx, actor, [entry])
    ctx.wakeups.wake(["auth"])


async def _named(ctx: Context, actor: Actor, name: str, action: Action) -> Project:
    async with ctx.db.reading() as connection:
        project = await views.by_name(connection, actor.scope, name)
    require(actor, action, project=project.id)
    return project


def _last_admin(project: str) -> Conflict:
    return Conflict(
        f"{project} would be left without an admin",
        hint="Make somebody else its admin first.",
        code="last_admin",
    )
