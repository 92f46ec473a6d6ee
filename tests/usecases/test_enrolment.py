"""How an agent is let in, proves who it is, and is locked out."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from datetime import timedelta

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from tests.rig.people import SYSTEM, Cast
from verderer.core.credentials import hash_token
from verderer.core.enrolment import join_message, renew_message
from verderer.core.errors import Conflict, Invalid, NotAllowed, NotAuthenticated, NotFound, Refusal
from verderer.core.model.actor import Actor
from verderer.core.model.cluster import CheckLevel, CheckReport
from verderer.store.database import Database
from verderer.store.tables import clusters as table
from verderer.usecases.agents.agent_session import hello, receive_checks
from verderer.usecases.authenticate import authenticate
from verderer.usecases.context import Context
from verderer.usecases.enrolment.expel import retire_cluster, revoke_agent
from verderer.usecases.enrolment.invite import Invitation, invite_agent
from verderer.usecases.enrolment.join import Admitted, Signed, join, renew

WHERE = "192.0.2.9"


def now_ms(ctx: Context) -> int:
    return int(ctx.clock().timestamp() * 1000)


def public(key: Ed25519PrivateKey) -> bytes:
    return key.public_key().public_bytes_raw()


async def come(
    ctx: Context, made: Invitation, key: Ed25519PrivateKey, **changes: object
) -> Admitted:
    at = now_ms(ctx)
    message = join_message(hash_token(made.token), public(key), at)
    signed = Signed(public_key=public(key), unix_ms=at, signature=key.sign(message))
    kind = str(changes.pop("kind", made.kind))
    return await join(ctx, made.token, replace(signed, **changes), kind=kind, origin=WHERE)


async def again(
    ctx: Context,
    cluster: str,
    key: Ed25519PrivateKey,
    new: Ed25519PrivateKey | None = None,
    *,
    at: int | None = None,
) -> Admitted:
    at = now_ms(ctx) if at is None else at
    new = new or key
    message = renew_message(cluster, public(new), at)
    signed = Signed(public_key=public(new), unix_ms=at, signature=key.sign(message))
    return await renew(ctx, cluster, signed, new_signature=new.sign(message), origin=WHERE)


@pytest.fixture
def key() -> Ed25519PrivateKey:
    return Ed25519PrivateKey.generate()


async def test_a_token_lets_one_agent_in_once(ctx: Context, key: Ed25519PrivateKey) -> None:
    made = await invite_agent(ctx, SYSTEM, "gpu-east", "slurm")
    admitted = await come(ctx, made, key)
    actor = await authenticate(ctx, bearer=admitted.credential)
    assert (actor.kind.value, actor.name) == ("agent", "gpu-east")
    with pytest.raises(NotAuthenticated) as refused:
        await come(ctx, made, Ed25519PrivateKey.generate())
    assert refused.value.code == "join_token_used"


async def test_of_many_agents_with_one_token_one_gets_in(ctx: Context) -> None:
    made = await invite_agent(ctx, SYSTEM, "gpu-east", "slurm")
    keys = [Ed25519PrivateKey.generate() for _ in range(8)]
    came = await asyncio.gather(*(come(ctx, made, k) for k in keys), return_exceptions=True)
    assert sum(isinstance(one, Admitted) for one in came) == 1
    assert sum(isinstance(one, NotAuthenticated) for one in came) == 7


async def test_a_token_is_for_its_kind_and_its_time(
    ctx: Context, database: Database, key: Ed25519PrivateKey
) -> None:
    made = await invite_agent(ctx, SYSTEM, "gpu-east", "slurm", life=timedelta(minutes=5))
    with pytest.raises(Refusal) as wrong:
        await come(ctx, made, key, kind="kubernetes")
    assert wrong.value.code == "wrong_kind"
    async with database.transaction() as tx:
        await tx.execute("UPDATE join_tokens SET expires_at = now() - interval '1 second'")
    with pytest.raises(NotAuthenticated) as late:
        await come(ctx, made, key)
    assert late.value.code == "join_token_expired"
    fresh = await invite_agent(ctx, SYSTEM, "gpu-east", "slurm")
    with pytest.raises(NotAuthenticated) as gone:
        await come(ctx, made, key)
    assert gone.value.code == "join_token_unknown", "the newer one took its place"
    assert (await come(ctx, fresh, key)).cluster_id == "gpu-east"


async def test_nothing_but_a_signature_of_this_key_now_counts(
    ctx: Context, key: Ed25519PrivateKey
) -> None:
    made = await invite_agent(ctx, SYSTEM, "gpu-east", "slurm")
    other = Ed25519PrivateKey.generate()
    with pytest.raises(NotAuthenticated):
        await come(ctx, made, key, public_key=public(other))
    with pytest.raises(NotAuthenticated) as skewed:
        await come(ctx, made, key, unix_ms=now_ms(ctx) - 400_000)
    assert skewed.value.code == "clock_skew"
    assert "400 s behind" in skewed.value.message
    for changes in ({"public_key": b"short"}, {"signature": b""}):
        with pytest.raises(Invalid):
            await come(ctx, made, key, **changes)
    assert await come(ctx, made, key), "none of these spent the token"


async def test_the_next_credential_takes_a_signature_and_overlaps(
    ctx: Context, key: Ed25519PrivateKey
) -> None:
    made = await invite_agent(ctx, SYSTEM, "gpu-east", "slurm")
    first = await come(ctx, made, key)
    at = now_ms(ctx) + 10
    second = await again(ctx, "gpu-east", key, at=at)
    for admitted in (first, second):
        assert (await authenticate(ctx, bearer=admitted.credential)).name == "gpu-east"
    with pytest.raises(NotAuthenticated) as replayed:
        await again(ctx, "gpu-east", key, at=at)
    assert replayed.value.code == "replayed"
    with pytest.raises(NotAuthenticated):
        await again(ctx, "gpu-east", Ed25519PrivateKey.generate(), at=at + 1)
    with pytest.raises(NotAuthenticated):
        await again(ctx, "nowhere", key, at=at + 1)


async def test_a_key_is_replaced_by_one_that_both_signed_for(
    ctx: Context, key: Ed25519PrivateKey
) -> None:
    made = await invite_agent(ctx, SYSTEM, "gpu-east", "slurm")
    await come(ctx, made, key)
    new, at = Ed25519PrivateKey.generate(), now_ms(ctx)
    stranger = Ed25519PrivateKey.generate()
    message = renew_message("gpu-east", public(new), at + 1)
    forged = Signed(public_key=public(new), unix_ms=at + 1, signature=key.sign(message))
    with pytest.raises(NotAuthenticated):
        await renew(ctx, "gpu-east", forged, new_signature=stranger.sign(message), origin=WHERE)
    await again(ctx, "gpu-east", key, new, at=at + 2)
    with pytest.raises(NotAuthenticated):
        await again(ctx, "gpu-east", key, at=at + 3)
    await again(ctx, "gpu-east", new, at=at + 4)


async def test_a_credential_runs_out(
    ctx: Context, database: Database, key: Ed25519PrivateKey
) -> None:
    made = await invite_agent(ctx, SYSTEM, "gpu-east", "slurm")
    admitted = await come(ctx, made, key)
    async with database.transaction() as tx:
        await tx.execute("UPDATE agent_credentials SET expires_at = now()")
    with pytest.raises(NotAuthenticated):
        await authenticate(ctx, bearer=admitted.credential)
    fresh = await again(ctx, "gpu-east", key, at=now_ms(ctx) + 10)
    assert await authenticate(ctx, bearer=fresh.credential)


async def test_a_revoked_agent_is_out_at_once_whatever_it_shows(
    ctx: Context, key: Ed25519PrivateKey
) -> None:
    made = await invite_agent(ctx, SYSTEM, "gpu-east", "slurm")
    admitted = await come(ctx, made, key)
    await revoke_agent(ctx, SYSTEM, "gpu-east")
    with pytest.raises(NotAuthenticated):
        await authenticate(ctx, bearer=admitted.credential)
    with pytest.raises(NotAuthenticated):
        await again(ctx, "gpu-east", key, at=now_ms(ctx) + 10)
    with pytest.raises(NotFound):
        await revoke_agent(ctx, SYSTEM, "gpu-east")
    back = await come(ctx, await invite_agent(ctx, SYSTEM, "gpu-east", "slurm"), key)
    assert await authenticate(ctx, bearer=back.credential)


async def test_revoking_closes_a_way_in_that_nobody_has_used(
    ctx: Context, database: Database, key: Ed25519PrivateKey
) -> None:
    made = await invite_agent(ctx, SYSTEM, "gpu-east", "slurm")
    await revoke_agent(ctx, SYSTEM, "gpu-east")
    with pytest.raises(NotAuthenticated) as refused:
        await come(ctx, made, key)
    assert refused.value.code == "join_token_unknown"
    async with database.reading() as tx:
        said = await tx.fetchval("SELECT action FROM audit ORDER BY seq DESC LIMIT 1")
    assert said == "cluster.join_token_revoked"
    with pytest.raises(NotFound):
        await revoke_agent(ctx, SYSTEM, "gpu-east")


async def test_another_agent_that_joins_locks_the_first_out(
    ctx: Context, key: Ed25519PrivateKey
) -> None:
    first = await come(ctx, await invite_agent(ctx, SYSTEM, "gpu-east", "slurm"), key)
    made = await invite_agent(ctx, SYSTEM, "gpu-east", "slurm")
    assert await authenticate(ctx, bearer=first.credential), "an invitation changes nothing yet"
    await come(ctx, made, Ed25519PrivateKey.generate())
    with pytest.raises(NotAuthenticated):
        await authenticate(ctx, bearer=first.credential)


async def test_a_removed_cluster_is_gone_from_lists_and_may_come_back(
    ctx: Context, database: Database, key: Ed25519PrivateKey
) -> None:
    admitted = await come(ctx, await invite_agent(ctx, SYSTEM, "gpu-east", "slurm"), key)
    await retire_cluster(ctx, SYSTEM, "gpu-east")
    with pytest.raises(NotAuthenticated):
        await authenticate(ctx, bearer=admitted.credential)
    async with database.reading() as tx:
        assert [row["cluster_id"] for row in await table.places(tx)] == []
    with pytest.raises(NotFound):
        await retire_cluster(ctx, SYSTEM, "gpu-east")
    with pytest.raises(Conflict):
        await invite_agent(ctx, SYSTEM, "gpu-east", "kubernetes")
    await invite_agent(ctx, SYSTEM, "gpu-east", "slurm")
    async with database.reading() as tx:
        assert [row["cluster_id"] for row in await table.places(tx)] == ["gpu-east"]


async def unfit(database: Database) -> str:
    async with database.reading() as tx:
        (row,) = await table.places(tx)
    return str(row["unfit"])


def found(level: CheckLevel, *, required: bool = True) -> CheckReport:
    return CheckReport(name="object store", level=level, required=required, message="m")


async def test_work_waits_until_every_required_check_has_passed(
    ctx: Context, database: Database, key: Ed25519PrivateKey
) -> None:
    admitted = await come(ctx, await invite_agent(ctx, SYSTEM, "gpu-east", "slurm"), key)
    assert await unfit(database) == "not checked yet"
    actor: Actor = await authenticate(ctx, bearer=admitted.credential)
    epoch = await hello(ctx, actor, instance="i", version="v")
    for level, expected in (
        (CheckLevel.UNKNOWN, "object store"),
        (CheckLevel.FAIL, "object store"),
        (CheckLevel.WARN, ""),
        (CheckLevel.PASS, ""),
    ):
        await receive_checks(ctx, actor, epoch=epoch, found=[found(level)])
        assert await unfit(database) == expected
    await receive_checks(ctx, actor, epoch=epoch, found=[found(CheckLevel.FAIL, required=False)])
    assert await unfit(database) == ""
    with pytest.raises(Conflict):
        await receive_checks(ctx, actor, epoch=epoch - 1, found=[])


async def test_only_platform_admins_let_agents_in(ctx: Context, cast: Cast) -> None:
    admin = await authenticate(ctx, bearer=cast.admin.token)
    for act in (
        invite_agent(ctx, admin, "x", "slurm"),
        revoke_agent(ctx, admin, "local"),
        retire_cluster(ctx, admin, "local"),
    ):
        with pytest.raises(NotAllowed):
            await act


@pytest.mark.parametrize(
    ("name", "kind", "life"),
    [
        ("Not A Name", "slurm", timedelta(hours=1)),
        ("x", "nomad", timedelta(hours=1)),
        ("x", "slurm", timedelta(seconds=1)),
        ("x", "slurm", timedelta(days=8)),
    ],
)
async def test_a_malformed_invitation_is_refused(
    ctx: Context, name: str, kind: str, life: timedelta
) -> None:
    with pytest.raises(Invalid):
        await invite_agent(ctx, SYSTEM, name, kind, life=life)
