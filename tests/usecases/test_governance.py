"""Resource groups in the database: what is reserved, for whom, where, and under which rules."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta

import asyncpg
import pytest

from tests.rig.invariants import BROKEN
from tests.usecases.world import ADMIN, OK, World, failed
from verderer.core.errors import Conflict, Invalid, NotAllowed, NotFound
from verderer.core.governance.definition import Definition
from verderer.core.governance.model import GrantKind
from verderer.core.model.actor import Actor, ActorKind, Role
from verderer.core.model.attempt import AttemptKey
from verderer.store.database import Database
from verderer.store.tables import projects
from verderer.usecases.governance import approvals
from verderer.usecases.governance.approvals import Decision, Request, decide
from verderer.usecases.governance.grants import grant, take_back
from verderer.usecases.governance.groups import (
    change_group,
    create_group,
    preview_group,
    retire_group,
)
from verderer.usecases.place_runs import Placer

ONE = (
    "metadata: {name: one, labels: {team: b}}\n"
    "steps: [{name: a, command: [x], resources: {requests: {cpu: '1'}}}]\n"
)


@pytest.fixture
async def world(database: Database) -> World:
    world = await World.make(database, local={"cpu": 4000, "memory": 8 << 30})
    await world.add_cluster("b", {"cpu": 10_000, "memory": 8 << 30})
    return world


async def ledger(world: World) -> Mapping[tuple[str, int, str], tuple[int | None, int]]:
    query = (
        "SELECT g.name, project_id, resource, quota, reserved FROM ledger AS l"
        " JOIN resource_groups AS g ON g.id = l.resource_group_id"
    )
    async with world.ctx.db.reading() as tx:
        rows = await tx.fetch(query)
    return {(r[0], r[1], r[2]): (r[3], r[4]) for r in rows}


async def whole(world: World) -> None:
    async with world.ctx.db.reading() as tx:
        for what, query in BROKEN.items():
            assert not await tx.fetch(query), what


async def forced(world: World, **quota: int) -> None:
    wanted = Definition(clusters=("b",), labels={"team": "b"}, quota=quota)
    await create_group(world.ctx, ADMIN, "rg-b", wanted)
    await grant(world.ctx, ADMIN, "rg-b", "default", kind=GrantKind.DEFAULT)


async def test_work_stays_on_the_clusters_of_its_group(world: World) -> None:
    await forced(world)
    runs = [await world.submit(ONE) for _ in range(12)]
    assert (await world.place()).placed == 10
    assert await world.orders("local") == []
    assert len(await world.orders("b")) == 10
    await whole(world)
    waits = await world.reasons(runs[-1].run)
    assert [(r["why"], r["cluster"]) for r in waits] == [("capacity", "b")]


async def test_a_quota_is_reserved_with_the_assignment_and_given_back_once(world: World) -> None:
    await forced(world, cpu=3000)
    runs = [(await world.submit(ONE)).run for _ in range(5)]
    assert (await world.place()).placed == 3
    found = await ledger(world)
    assert found["rg-b", 0, "cpu"] == (3000, 3000)
    project = next(p for name, p, _ in found if name == "rg-b" and p)
    assert found["rg-b", project, "cpu"] == (None, 3000)
    (reason, *_) = await world.reasons(runs[-1])
    assert (reason["why"], reason["asked"], reason["total"]) == ("group_quota", 1000, 3000)
    key = AttemptKey(runs[0], 0, 1)
    await world.report(key, OK, name="b")
    await world.report(key, OK, name="b")
    assert (await ledger(world))["rg-b", 0, "cpu"] == (3000, 2000)
    assert (await world.place()).placed == 1
    await whole(world)


async def test_the_database_itself_refuses_more_than_the_quota(world: World) -> None:
    await forced(world, cpu=3000)
    async with world.ctx.db.reading() as tx:
        with pytest.raises(asyncpg.CheckViolationError):
            await tx.execute("UPDATE ledger SET reserved = quota + 1 WHERE quota IS NOT NULL")


async def test_a_smaller_quota_sinks_as_work_ends_and_stops_none(world: World) -> None:
    await forced(world, cpu=4000)
    runs = [(await world.submit(ONE)).run for _ in range(6)]
    await world.place()
    wanted = Definition(clusters=("b",), labels={"team": "b"}, quota={"cpu": 2000})
    seen = await preview_group(world.ctx, ADMIN, "rg-b", wanted)
    assert [(q.before, q.after, q.reserved, q.sinks) for q in seen.quotas] == [
        (4000, 2000, 4000, True)
    ]
    await change_group(world.ctx, ADMIN, "rg-b", wanted)
    for run, left in zip(runs, [3000, 2000, 2000], strict=False):
        await world.report(AttemptKey(run, 0, 1), OK, name="b")
        quota, reserved = (await ledger(world))["rg-b", 0, "cpu"]
        assert quota == left
        assert reserved <= left
    assert (await world.place()).placed == 1
    await whole(world)


async def test_labels_and_names_choose_among_grants_and_never_beyond(world: World) -> None:
    await forced(world)
    await create_group(world.ctx, ADMIN, "rg-c", Definition(clusters=("local",)))
    for document in (ONE.replace("team: b", "team: c"), ONE.replace("labels: {team: b}", "")):
        with pytest.raises(NotAllowed, match="rg-b takes runs with team: b only") as refused:
            await world.submit(document)
        assert refused.value.code == "label_policy"
    for asked in ("rg-c", "elsewhere"):
        named = ONE.replace("name: one,", f"name: one, resourceGroup: {asked},")
        with pytest.raises(NotAllowed, match=asked):
            await world.submit(named)
    # The old default is an optional one now.
    await world.submit(ONE.replace("name: one,", "name: one, resourceGroup: everything,"))


async def test_a_grant_that_is_taken_back_or_over_holds_what_waits(world: World) -> None:
    await forced(world)
    run = (await world.submit(ONE)).run
    await take_back(world.ctx, ADMIN, "rg-b", "default")
    assert (await world.place()).placed == 0
    (reason,) = await world.reasons(run)
    assert (reason["why"], reason["group"]) == ("not_granted", "rg-b")
    with pytest.raises(NotAllowed, match="no default"):
        await world.submit(ONE)
    soon = datetime.now(UTC) + timedelta(seconds=0.3)
    await grant(world.ctx, ADMIN, "rg-b", "default", kind=GrantKind.OPTIONAL, until=soon)
    await asyncio.sleep(0.4)
    assert (await world.place()).placed == 0
    await grant(world.ctx, ADMIN, "rg-b", "default", kind=GrantKind.DEFAULT)
    assert (await world.place()).placed == 1


async def test_rules_that_change_between_plan_and_order_void_the_plan(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    await forced(world)
    await world.submit(ONE)
    write = Placer._write

    async def meanwhile(placer: Placer, plan: object) -> int:
        wanted = Definition(clusters=("local",), labels={"team": "b"})
        await change_group(world.ctx, ADMIN, "rg-b", wanted)
        return await write(placer, plan)  # type: ignore[arg-type]

    with monkeypatch.context() as patched:
        patched.setattr(Placer, "_write", meanwhile)
        done = await world.place()
    assert (done.placed, done.more) == (0, True)
    assert (await world.place()).placed == 1
    assert len(await world.orders("local")) == 1
    assert await world.orders("b") == []


async def test_a_group_with_open_runs_and_the_first_one_stay(world: World) -> None:
    await forced(world)
    run = (await world.submit(ONE)).run
    await world.place()
    with pytest.raises(Conflict, match="1 runs"):
        await retire_group(world.ctx, ADMIN, "rg-b")
    with pytest.raises(Conflict, match="stays"):
        await retire_group(world.ctx, ADMIN, "everything")
    await world.report(AttemptKey(run, 0, 1), OK, name="b")
    await retire_group(world.ctx, ADMIN, "rg-b")
    with pytest.raises(NotAllowed):
        await world.submit(ONE)
    await create_group(world.ctx, ADMIN, "rg-b", Definition())


async def test_who_read_an_old_version_does_not_overwrite_a_newer_one(world: World) -> None:
    await forced(world)
    await change_group(world.ctx, ADMIN, "rg-b", Definition(title="new"), version=1)
    with pytest.raises(Conflict, match="changed meanwhile"):
        await change_group(world.ctx, ADMIN, "rg-b", Definition(title="other"), version=1)


async def test_unknown_clusters_are_named_and_nothing_is_written(world: World) -> None:
    with pytest.raises(Invalid) as refused:
        await create_group(world.ctx, ADMIN, "rg-b", Definition(clusters=("b", "x", "local", "y")))
    assert [p.field for p in refused.value.problems] == ["clusters[1]", "clusters[3]"]
    with pytest.raises(NotFound):
        await retire_group(world.ctx, ADMIN, "rg-b")


async def test_only_platform_admins_touch_groups(world: World) -> None:
    member = Actor(kind=ActorKind.USER, name="m@example.org", roles={1: Role.ADMIN})
    with pytest.raises(NotAllowed):
        await create_group(world.ctx, member, "mine", Definition())
    with pytest.raises(NotAllowed):
        await grant(world.ctx, member, "everything", "default", kind=GrantKind.DEFAULT)


async def test_access_is_asked_for_approved_and_ends(world: World) -> None:
    member = Actor(kind=ActorKind.USER, name="m@example.org", roles={1: Role.MEMBER})
    stranger = Actor(kind=ActorKind.USER, name="s@example.org")
    await create_group(world.ctx, ADMIN, "common", Definition(clusters=("b",)))
    request = Request(project="demo", resource_group="common", reason="a sweep")
    async with world.ctx.db.transaction() as tx:
        await tx.execute("UPDATE projects SET id = DEFAULT WHERE false")
        number = await tx.fetchval("SELECT id FROM projects WHERE name = 'demo'")
    member = Actor(kind=ActorKind.USER, name="m@example.org", roles={number: Role.MEMBER})
    with pytest.raises(NotFound):
        await approvals.ask(world.ctx, stranger, request)
    asked = await approvals.ask(world.ctx, member, request)
    with pytest.raises(Conflict, match="already"):
        await approvals.ask(world.ctx, member, request)
    with pytest.raises(NotAllowed):
        await decide(world.ctx, member, asked, Decision.APPROVED)
    named = ONE.replace("name: one,", "name: one, resourceGroup: common,")
    with pytest.raises(NotAllowed, match="common"):
        await world.submit(named)
    await decide(world.ctx, ADMIN, asked, Decision.APPROVED, note="until June")
    with pytest.raises(Conflict, match="approved already"):
        await decide(world.ctx, ADMIN, asked, Decision.DENIED)
    await world.submit(named)
    assert (await world.place()).placed == 1
    async with world.ctx.db.reading() as tx:
        actions = await tx.fetch("SELECT action FROM audit WHERE action ~ 'approval|grant'")
    assert [r["action"] for r in actions] == [
        "approval.requested", "grant.given", "approval.approved",
    ]  # fmt: skip


async def test_a_larger_quota_is_asked_for_and_approved(world: World) -> None:
    await forced(world, cpu=1000)
    request = Request(
        project="demo", resource_group="rg-b", reason="more of it", quota={"cpu": 3000}
    )
    asked = await approvals.ask(world.ctx, ADMIN, request)
    for _ in range(4):
        await world.submit(ONE)
    assert (await world.place()).placed == 1
    await decide(world.ctx, ADMIN, asked, Decision.APPROVED)
    assert (await world.place()).placed == 2
    await whole(world)


async def test_what_nobody_decides_and_grants_that_are_over_are_cleared_away(world: World) -> None:
    await create_group(world.ctx, ADMIN, "common", Definition())
    request = Request(project="demo", resource_group="common", reason="a sweep")
    await approvals.ask(world.ctx, ADMIN, request)
    async with world.ctx.db.transaction() as tx:
        await tx.execute("UPDATE approvals SET requested_at = now() - interval '31 days'")
    soon = datetime.now(UTC) + timedelta(seconds=0.2)
    await grant(world.ctx, ADMIN, "common", "default", kind=GrantKind.OPTIONAL, until=soon)
    await asyncio.sleep(0.3)
    assert await approvals.expire(world.ctx) == 2
    assert await approvals.expire(world.ctx) == 0


async def test_sixteen_submitters_and_three_schedulers_against_a_quota_for_five(
    world: World,
) -> None:
    await forced(world, cpu=5000)
    await world.lead()
    assert world.placer is not None

    async def submit() -> None:
        for _ in range(3):
            await world.submit(ONE)

    async def place(placer: Placer) -> None:
        for _ in range(30):
            await placer.round()
            await asyncio.sleep(0.005)

    epoch = world.placer._epoch
    placers = [Placer(world.ctx, epoch=epoch) for _ in range(3)]
    await asyncio.gather(*(submit() for _ in range(16)), *(place(p) for p in placers))
    assert len(await world.orders("b")) == 5
    assert (await ledger(world))["rg-b", 0, "cpu"] == (5000, 5000)
    for order in await world.orders("b"):
        await world.report(order.key, failed(3), name="b")
    await whole(world)


async def test_two_projects_share_a_group_however_early_one_came(world: World) -> None:
    async with world.ctx.db.transaction() as tx:
        await projects.add(tx, name="late", title="")
    await forced(world, cpu=6000)
    for _ in range(8):
        await world.submit(ONE)
    for _ in range(8):
        await world.submit(ONE, project="late")
    await world.place()
    held = {p: n for (name, p, _), (_, n) in (await ledger(world)).items() if name == "rg-b" and p}
    assert sorted(held.values()) == [3000, 3000]


async def test_an_urgent_run_goes_first_and_keeps_that_over_a_retry(world: World) -> None:
    await forced(world, cpu=1000)
    plain = (await world.submit(ONE)).run
    urgent = ONE.replace("name: one,", "name: urgent, priority: high,")
    urgent = urgent.replace("name: a,", "name: a, retries: {count: 1, backoff: 0},")
    first = (await world.submit(urgent)).run
    assert (await world.place()).placed == 1
    (order,) = await world.orders("b")
    assert order.key.run == first
    await world.report(order.key, failed(1), name="b")
    assert (await world.place()).placed == 1
    (order,) = await world.orders("b")
    assert (order.key.run, order.key.number) == (first, 2)
    await world.report(order.key, OK, name="b")
    await world.place()
    (order,) = await world.orders("b")
    assert order.key.run == plain
    await whole(world)
