"""Grant resource groups to project groups, and take them back."""

from __future__ import annotations

from datetime import datetime

from verderer.core.access import Action, require
from verderer.core.errors import Invalid, NotFound, Problem
from verderer.core.governance.model import GrantKind
from verderer.core.model.actor import Actor
from verderer.store.database import Tx
from verderer.store.tables import audit
from verderer.store.tables.governed import grants, groups
from verderer.usecases.context import Context
from verderer.usecases.governance.groups import WOKEN, held_group


async def grant(
    ctx: Context,
    actor: Actor,
    resource_group: str,
    project_group: str,
    *,
    kind: GrantKind,
    until: datetime | None = None,
) -> None:
    """Let the projects of a group use a resource group; a new default makes the old one optional.

    Raises:
        NotAllowed: the actor is not a platform admin.
        NotFound: one of the two does not exist.
        Invalid: `until` is over, or stands at a default.
    """
    require(actor, Action.GROUP_MANAGE)
    check_until(ctx, until)
    if until is not None and kind is GrantKind.DEFAULT:
        problem = Problem(field="until", message="a default has no end")
        raise Invalid("a default grant stays until it is taken back", problems=[problem])
    async with ctx.db.transaction() as tx:
        await groups.raise_version(tx)
        project, resource = await both(tx, resource_group, project_group)
        await write(tx, actor, (project, project_group), (resource, resource_group), kind, until)
    ctx.wakeups.wake(WOKEN)


async def take_back(ctx: Context, actor: Actor, resource_group: str, project_group: str) -> None:
    """What runs goes on; what waits waits on, and says why.

    Raises:
        NotAllowed: the actor is not a platform admin.
        NotFound: there is no such grant.
    """
    require(actor, Action.GROUP_MANAGE)
    async with ctx.db.transaction() as tx:
        await groups.raise_version(tx)
        project, resource = await both(tx, resource_group, project_group)
        if not await grants.take(tx, project, resource):
            raise NotFound(f"{project_group} has no grant of {resource_group}")
        entry = audit.Entry(
            action="grant.taken_back",
            object=f"resource_group:{resource_group}",
            detail={"project_group": project_group},
        )
        await audit.add(tx, actor, [entry])
    ctx.wakeups.wake(WOKEN)


async def write(
    tx: Tx,
    actor: Actor,
    project_group: tuple[int, str],
    resource_group: tuple[int, str],
    kind: GrantKind,
    until: datetime | None,
) -> None:
    """Write a grant with its audit row, ids beside names; the caller holds the rules."""
    number, name = project_group
    changed = await grants.put(tx, number, resource_group[0], kind=kind, until=until, by=str(actor))
    if changed:
        detail = {"project_group": name, "kind": kind.value}
        if until is not None:
            detail["until"] = until.isoformat()
        entry = audit.Entry(
            action="grant.given", object=f"resource_group:{resource_group[1]}", detail=detail
        )
        await audit.add(tx, actor, [entry])


async def both(tx: Tx, resource_group: str, project_group: str) -> tuple[int, int]:
    """Ids of a project group and a resource group.

    Raises:
        NotFound: one of them does not exist.
    """
    project = await grants.project_group_id(tx, project_group)
    if project is None:
        raise NotFound("no such project group")
    return project, (await held_group(tx, resource_group)).id


def check_until(ctx: Context, until: datetime | None) -> None:
    """Refuse an end that is over, or has no time zone."""
    if until is None:
        return
    if until.tzinfo is None or until <= ctx.clock():
        problem = Problem(field="until", message="must be a moment to come, with its time zone")
        raise Invalid("the grant would be over at once", problems=[problem])
