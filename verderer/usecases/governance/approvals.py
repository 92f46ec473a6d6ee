"""Ask for access to a resource group or a larger quota, and decide about it.

Nothing is granted without a row here that says who asked, who decided and why, unless a platform
admin grants it of their own accord, which the audit says.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Final

from verderer.core.access import Action, require
from verderer.core.errors import Conflict, Invalid, NotFound, Problem
from verderer.core.governance.definition import write_quota
from verderer.core.governance.model import GrantKind
from verderer.core.labels import check_title
from verderer.core.model.actor import Actor, ActorKind
from verderer.store.database import Tx
from verderer.store.tables import audit, project_names
from verderer.store.tables.governed import approvals, grants, groups, ledger
from verderer.store.tables.governed.approvals import Asked
from verderer.usecases.context import Context
from verderer.usecases.governance.grants import check_until, write
from verderer.usecases.governance.groups import WOKEN

OPEN_FOR: Final = timedelta(days=30)
"""A request that nobody decides about for so long is closed."""


_JANITOR: Final = Actor(kind=ActorKind.SYSTEM, name="janitor")


class Decision(StrEnum):
    APPROVED = "approved"
    DENIED = "denied"


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """What somebody asks for."""

    project: str
    resource_group: str
    reason: str
    quota: Mapping[str, int] = field(default_factory=dict)
    """The quotas that are wanted, in base units; empty: access is asked for."""
    until: datetime | None = None


async def ask(ctx: Context, actor: Actor, request: Request) -> int:
    """Write a request down; its number.

    Raises:
        NotAllowed: the actor is no admin of the project.
        NotFound: no such project or resource group.
        Invalid: no reason is given, or `until` is over.
        Conflict: the same was asked for already, or the project has it.
    """
    reason = check_title(request.reason, field="reason", most=1000, least=3)
    check_until(ctx, request.until)
    if request.quota and request.until is not None:
        problem = Problem(field="until", message="a quota has no end")
        raise Invalid("a quota is raised until somebody changes it", problems=[problem])
    async with ctx.db.transaction() as tx:
        project = await project_names.id_of(tx, request.project)
        require(actor, Action.APPROVAL_ASK, project=project or 0)
        group = await groups.lock(tx, request.resource_group)
        owner = await grants.group_of_project(tx, project or 0)
        if group is None or owner is None:
            raise NotFound("no such project" if owner is None else "no such resource group")
        number = await approvals.add(
            tx,
            approvals.NewRequest(
                kind="quota" if request.quota else "access",
                project_group=owner,
                resource_group=group.id,
                detail=dict(request.quota),
                reason=reason,
                until=request.until,
                by=str(actor),
            ),
        )
        detail = {"number": number, "project": request.project, **write_quota(request.quota)}
        await audit.add(tx, actor, [_entry("requested", request.resource_group, detail)])
    ctx.wakeups.wake(["governance"])
    return number


async def decide(
    ctx: Context, actor: Actor, number: int, decision: Decision, *, note: str = ""
) -> None:
    """Approve or deny; what is approved holds from this transaction on.

    Raises:
        NotAllowed: the actor is not a platform admin.
        NotFound: there is no such request.
        Conflict: it was decided before.
    """
    require(actor, Action.APPROVAL_DECIDE)
    note = check_title(note, field="note", most=1000)
    async with ctx.db.transaction() as tx:
        await groups.raise_version(tx)
        asked = await _held(tx, number)
        await approvals.decide(tx, number, state=decision.value, by=str(actor), note=note)
        if decision is Decision.APPROVED:
            await _grant(ctx, tx, actor, asked)
        detail = {"number": number, "project_group": asked.project_group}
        await audit.add(tx, actor, [_entry(decision.value, asked.resource_group, detail)])
    ctx.wakeups.wake(WOKEN)


async def withdraw(ctx: Context, actor: Actor, number: int) -> None:
    """Take one's own request back.

    Raises:
        NotFound: there is no such request of the actor's.
        Conflict: it was decided before.
    """
    require(actor, Action.APPROVAL_READ)
    async with ctx.db.transaction() as tx:
        found = await approvals.lock(tx, number)
        own = found is not None and found.requested_by == str(actor)
        if not (own or actor.platform_admin):
            raise NotFound("no such request of yours")
        asked = await _held(tx, number)
        await approvals.decide(tx, number, state="withdrawn", by=str(actor), note="")
        await audit.add(tx, actor, [_entry("withdrawn", asked.resource_group, {"number": number})])
    ctx.wakeups.wake(["governance"])


async def expire(ctx: Context) -> int:
    """Close old requests and end grants whose time is over; how many."""
    async with ctx.db.transaction() as tx:
        closed = await approvals.expire(tx, OPEN_FOR)
        over = await grants.expire(tx)
        if over:
            await groups.raise_version(tx)
        entries = [
            _entry("expired", row["resource_group"], {"number": row["id"]}) for row in closed
        ]
        entries += [
            audit.Entry(
                action="grant.expired",
                object=f"resource_group:{row['resource_group']}",
                detail={"project_group": row["project_group"]},
            )
            for row in over
        ]
        await audit.add(tx, _JANITOR, entries)
    if closed or over:
        ctx.wakeups.wake(WOKEN)
    return len(closed) + len(over)


async def _held(tx: Tx, number: int) -> Asked:
    asked = await approvals.lock(tx, number)
    if asked is None:
        raise NotFound("no such request")
    if asked.state != "requested":
        raise Conflict(f"the request was {asked.state} already", code="decided_already")
    return asked


async def _grant(ctx: Context, tx: Tx, actor: Actor, asked: Asked) -> None:
    if asked.until is not None and asked.until <= ctx.clock():
        problem = Problem(field="until", message="is over")
        raise Invalid("what was asked for is over by now; deny it", problems=[problem])
    project = (asked.project_group_id, asked.project_group)
    resource = (asked.resource_group_id, asked.resource_group)
    if asked.kind == "access":
        await write(tx, actor, project, resource, GrantKind.OPTIONAL, asked.until)
    else:
        await ledger.raise_quotas(tx, asked.resource_group_id, asked.detail)


def _entry(done: str, group: str, detail: Mapping[str, object]) -> audit.Entry:
    return audit.Entry(
        action=f"approval.{done}", object=f"resource_group:{group}", detail=dict(detail)
    )
