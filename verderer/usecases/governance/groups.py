"""Define, change and retire resource groups."""

from __future__ import annotations

from collections.abc import Sequence

from verderer.core.access import Action, require
from verderer.core.errors import Conflict, Invalid, NotFound, Problem
from verderer.core.governance.definition import Definition, write_quota
from verderer.core.governance.model import EVERYTHING, Account
from verderer.core.governance.preview import Preview, WaitingLot, preview
from verderer.core.labels import check_name
from verderer.core.model.actor import Actor
from verderer.core.model.resources import Resources
from verderer.store.database import Tx
from verderer.store.tables import audit
from verderer.store.tables.governed import effects, groups, ledger
from verderer.usecases.context import Context

WOKEN = ("governance", "queue", "clusters")
"""Who listens to one of these looks again when rules changed."""


async def create_group(ctx: Context, actor: Actor, name: str, wanted: Definition) -> None:
    """Make a resource group, which no project group may use yet.

    Raises:
        NotAllowed: the actor is not a platform admin.
        Invalid: the name is none, or a cluster is unknown.
        Conflict: the name is taken.
    """
    require(actor, Action.GROUP_MANAGE)
    check_name(name, field="name")
    async with ctx.db.transaction() as tx:
        await groups.raise_version(tx)
        number = await groups.add(tx, _row(name, wanted))
        await _write(tx, number, wanted)
        await audit.add(tx, actor, [_entry("created", name, wanted)])
    ctx.wakeups.wake(WOKEN)


async def change_group(
    ctx: Context, actor: Actor, name: str, wanted: Definition, *, version: int | None = None
) -> None:
    """Make a group what is wanted; what runs goes on, what waits is looked at again.

    A quota below what is reserved sinks to what was asked for as work ends.

    Raises:
        NotAllowed: the actor is not a platform admin.
        NotFound: there is no such group.
        Invalid: a cluster is unknown.
        Conflict: it is not of that `version` any more; None: of any.
    """
    require(actor, Action.GROUP_MANAGE)
    async with ctx.db.transaction() as tx:
        await groups.raise_version(tx)
        found = await held_group(tx, name)
        if version not in (None, found.version):
            raise Conflict(
                f"resource group {name} was changed meanwhile",
                hint="Read it again and repeat the change.",
                code="changed_meanwhile",
            )
        await groups.change(tx, _row(name, wanted, found.id))
        await _write(tx, found.id, wanted)
        await audit.add(tx, actor, [_entry("changed", name, wanted)])
    ctx.wakeups.wake(WOKEN)


async def preview_group(ctx: Context, actor: Actor, name: str, wanted: Definition) -> Preview:
    """What `change_group` would do to what runs and waits.

    Raises:
        NotAllowed, NotFound, Invalid: as `change_group` would.
    """
    require(actor, Action.GROUP_MANAGE)
    async with ctx.db.transaction() as tx:
        group = (await held_group(tx, name)).id
        here = await effects.cluster_names(tx, group)
        await _cluster_ids(tx, wanted.clusters or ())
        leaving = [] if wanted.clusters is None else [c for c in here if c not in wanted.clusters]
        lots = await effects.waiting_lots(tx, group)
        running = await effects.live_on(tx, group, leaving)
        accounts = await ledger.of_groups(tx, [group])
    return preview(
        accounts={
            row["resource"]: Account(row["quota"], row["reserved"])
            for row in accounts
            if row["project_id"] == ledger.WHOLE
        },
        quota=wanted.quota,
        waiting=[
            WaitingLot(steps, Resources.of(asks).scaled(nodes).as_dict())
            for steps, asks, nodes in lots
        ],
        leaving={cluster: running.get(cluster, 0) for cluster in leaving},
        joining=[c for c in wanted.clusters or () if c not in here],
    )


async def retire_group(ctx: Context, actor: Actor, name: str) -> None:
    """Take a group out for good, with every grant of it.

    Raises:
        NotAllowed: the actor is not a platform admin.
        NotFound: there is no such group.
        Conflict: runs of it are not over, or it is the first one.
    """
    require(actor, Action.GROUP_MANAGE)
    async with ctx.db.transaction() as tx:
        await groups.raise_version(tx)
        found = await held_group(tx, name)
        if found.id == EVERYTHING:
            raise Conflict("the first resource group stays", hint="Take back its grants instead.")
        if n := await groups.open_runs(tx, found.id):
            many = f"{n} runs" if n < 1000 else "1,000 runs or more"
            raise Conflict(
                f"{many} of resource group {name} are not over",
                hint="Cancel them, or wait until they are.",
                code="group_busy",
            )
        await groups.retire(tx, found.id)
        entry = audit.Entry(action="resource_group.retired", object=f"resource_group:{name}")
        await audit.add(tx, actor, [entry])
    ctx.wakeups.wake(WOKEN)


async def held_group(tx: Tx, name: str) -> groups.Group:
    """A group, held until the transaction ends.

    Raises:
        NotFound: there is none of that name.
    """
    if (found := await groups.lock(tx, name)) is None:
        raise NotFound("no such resource group")
    return found


async def _write(tx: Tx, number: int, wanted: Definition) -> None:
    found = await _cluster_ids(tx, wanted.clusters or ())
    await groups.set_clusters(tx, number, found)
    await ledger.set_quotas(tx, number, wanted.quota)


async def _cluster_ids(tx: Tx, names: Sequence[str]) -> list[int]:
    known = await groups.cluster_ids(tx, names)
    problems = [
        Problem(field=f"clusters[{i}]", message=f"there is no cluster {name[:63]}")
        for i, name in enumerate(names)
        if name not in known
    ]
    if problems:
        raise Invalid("a cluster is unknown", problems=problems)
    return [known[name] for name in names]


def _row(name: str, wanted: Definition, number: int = 0) -> groups.Group:
    return groups.Group(
        id=number,
        name=name,
        title=wanted.title,
        every_cluster=wanted.clusters is None,
        labels=wanted.labels,
        order=wanted.order,
    )


def _entry(done: str, name: str, wanted: Definition) -> audit.Entry:
    return audit.Entry(
        action=f"resource_group.{done}",
        object=f"resource_group:{name}",
        detail={
            "clusters": "every" if wanted.clusters is None else list(wanted.clusters),
            "labels": dict(wanted.labels),
            "order": wanted.order.value,
            "quota": write_quota(wanted.quota),
        },
    )
