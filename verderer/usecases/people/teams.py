"""Project groups: make them, say who is in them, and move projects between them."""

from __future__ import annotations

from verderer.core.access import Action, require
from verderer.core.errors import Conflict, NotFound
from verderer.core.labels import check_name, check_title
from verderer.core.model.actor import Actor, Role
from verderer.core.model.people import Member
from verderer.store.database import Tx
from verderer.store.tables import audit, people
from verderer.store.tables.governed import groups, teams
from verderer.usecases.context import Context

_WOKEN = ("auth", "governance", "queue")


async def create_team(ctx: Context, actor: Actor, *, name: str, title: str = "") -> None:
    """Make a project group. It may use no resource group until one is granted.

    Raises:
        NotAllowed: the actor is not a platform admin.
        Invalid: the name or the title is not acceptable.
        Conflict: the name is taken.
    """
    require(actor, Action.TEAM_MANAGE)
    check_name(name, field="name")
    shown = check_title(title, field="title")
    async with ctx.db.transaction() as tx:
        await teams.add(tx, name, shown)
        await audit.add(tx, actor, [_entry("created", name)])


async def delete_team(ctx: Context, actor: Actor, name: str) -> None:
    """Delete a project group that has no project.

    Raises:
        NotAllowed: the actor is not a platform admin.
        NotFound: there is no such group.
        Conflict: it has projects.
    """
    require(actor, Action.TEAM_MANAGE)
    async with ctx.db.transaction() as tx:
        await groups.raise_version(tx)
        group = await _locked(tx, name)
        if n := await teams.projects(tx, group):
            raise Conflict(
                f"{n} projects belong to {name}", hint="Move them first.", code="group_not_empty"
            )
        await teams.delete(tx, group)
        await audit.add(tx, actor, [_entry("deleted", name)])
    ctx.wakeups.wake(_WOKEN)


async def move_project(ctx: Context, actor: Actor, project: str, name: str) -> None:
    """Give a project to another group: its members and resource groups change with that.

    What runs goes on; what waits in a resource group that the new group may not use waits on.

    Raises:
        NotAllowed: the actor is not a platform admin.
        NotFound: there is no such project or group.
    """
    require(actor, Action.TEAM_MANAGE)
    async with ctx.db.transaction() as tx:
        await groups.raise_version(tx)
        group = await _locked(tx, name)
        number = await teams.move(tx, project, group)
        if number is not None:
            entry = audit.Entry(
                action="project.moved", project=number, object=project, detail={"group": name}
            )
            await audit.add(tx, actor, [entry])
    ctx.wakeups.wake(_WOKEN)


async def put_team_member(
    ctx: Context, actor: Actor, name: str, *, email: str, role: Role
) -> Member:
    """Give somebody a role in every project of the group, those made later too.

    Raises:
        NotAllowed: the actor is not a platform admin.
        NotFound: there is no such group or user.
    """
    require(actor, Action.TEAM_MANAGE)
    async with ctx.db.transaction() as tx:
        group = await _locked(tx, name)
        user = await people.user_by_email(tx, email.lower())
        if await teams.put_member(tx, group, user.id, role):
            detail = {"user": user.email, "role": role.value}
            await audit.add(tx, actor, [_entry("member_set", name, detail)])
    ctx.wakeups.wake(["auth"])
    return Member(user=user.id, email=user.email, name=user.name, role=role, active=user.active)


async def remove_team_member(ctx: Context, actor: Actor, name: str, *, email: str) -> None:
    """Take somebody out of the group, at once; roles in single projects stay.

    Raises:
        NotAllowed: the actor is not a platform admin.
        NotFound: there is no such group, or no such member.
    """
    require(actor, Action.TEAM_MANAGE)
    async with ctx.db.transaction() as tx:
        group = await _locked(tx, name)
        user = await people.user_by_email(tx, email.lower())
        if not await teams.remove_member(tx, group, user.id):
            raise NotFound(f"{user.email} is not a member of {name}")
        await audit.add(tx, actor, [_entry("member_removed", name, {"user": user.email})])
    ctx.wakeups.wake(["auth"])


async def _locked(tx: Tx, name: str) -> int:
    group = await teams.lock(tx, name)
    if group is None:
        raise NotFound("no such project group")
    return group


def _entry(done: str, name: str, detail: dict[str, str] | None = None) -> audit.Entry:
    return audit.Entry(
        action=f"project_group.{done}", object=f"project_group:{name}", detail=detail
    )
