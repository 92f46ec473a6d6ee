"""An agent comes with a join token and a key, and later for its next credential."""

from __future__ import annotations

from dataclasses import dataclass

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

from verderer.core.credentials import TokenKind, hash_token, kind_of, make_token
from verderer.core.enrolment import (
    CREDENTIAL_LIFE,
    check_moment,
    check_sizes,
    join_message,
    renew_message,
)
from verderer.core.errors import NotAuthenticated, Refusal
from verderer.core.model.actor import Actor, ActorKind
from verderer.store.database import Tx
from verderer.store.tables import audit, checks, enrolment
from verderer.usecases.context import Context

NOT_CHECKED = "not checked yet"
"""Stands for the checks until the agent has made them: what was not looked at is not passed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Admitted:
    """What the agent shows from now on, for `life_s` seconds."""

    cluster_id: str
    kind: str
    credential: str
    life_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Signed:
    """A public key, and the proof that whoever sends it has the private half."""

    public_key: bytes
    unix_ms: int
    """When it was signed, by the agent's clock."""
    signature: bytes


async def join(ctx: Context, token: str, signed: Signed, *, kind: str, origin: str) -> Admitted:
    """Spend a join token: the key is the cluster's agent's from now on.

    An agent that had joined before is locked out in the same transaction.

    Raises:
        Invalid: key or signature is malformed.
        NotAuthenticated: the token is unknown, used or out of time, the signature is not of this
            key, or the clocks are too far apart.
        Refusal: the token is of a cluster of another kind.
    """
    check_sizes(signed.public_key, signed.signature)
    check_moment(signed.unix_ms, now_ms=_now_ms(ctx))
    hashed = hash_token(token)
    message = join_message(hashed, signed.public_key, signed.unix_ms)
    _verify(signed.public_key, signed.signature, message)
    async with ctx.db.transaction() as tx:
        found = None
        if kind_of(token) is TokenKind.JOIN:
            found = await enrolment.use_join_token(tx, hashed, origin[:100])
        if found is None:
            raise await _why_not(tx, hashed)
        if found.kind != kind:
            raise Refusal(
                f"this token is for a cluster of kind {found.kind}, and the agent is for {kind}",
                hint="Make a token for a cluster of the right kind, or set agent.kind.",
                code="wrong_kind",
            )
        await enrolment.drop_credentials(tx, found.cluster_id)
        await enrolment.put_key(tx, found.id, signed.public_key, signed.unix_ms)
        await checks.set_unfit(tx, found.id, NOT_CHECKED)
        credential = await _give(ctx, tx, found.id)
        await _note(tx, found.id, found.cluster_id, "cluster.agent_joined", origin)
    ctx.wakeups.wake({"auth", "clusters", f"cluster:{found.id}"})
    return Admitted(
        cluster_id=found.cluster_id,
        kind=found.kind,
        credential=credential,
        life_s=CREDENTIAL_LIFE.total_seconds(),
    )


async def renew(
    ctx: Context, cluster_id: str, signed: Signed, *, new_signature: bytes, origin: str
) -> Admitted:
    """Give an agent its next credential, and take its next key if it brings one.

    `signed.signature` is of the known key, `new_signature` of the one that is sent; both are over
    `core.enrolment.renew_message`. Each signature is taken once.

    Raises:
        Invalid: key or signature is malformed.
        NotAuthenticated: the agent is not known by this key (any more), the signature was used
            before, or the clocks are too far apart.
    """
    check_sizes(signed.public_key, signed.signature, new_signature)
    check_moment(signed.unix_ms, now_ms=_now_ms(ctx))
    message = renew_message(cluster_id, signed.public_key, signed.unix_ms)
    async with ctx.db.transaction() as tx:
        known = await enrolment.key_of(tx, cluster_id)
        if known is None:
            raise _unknown_agent()
        _verify(known.public_key, signed.signature, message)
        _verify(signed.public_key, new_signature, message)
        changed = known.public_key != signed.public_key
        if not await enrolment.note_signed(tx, known.cluster, signed.unix_ms, signed.public_key):
            raise NotAuthenticated(
                "this signature was used before, or a later one was",
                hint="Try again; if it stays, another agent has the same key.",
                code="replayed",
            )
        credential = await _give(ctx, tx, known.cluster)
        action = "cluster.agent_key_changed" if changed else "cluster.credential_made"
        await _note(tx, known.cluster, cluster_id, action, origin)
    return Admitted(
        cluster_id=cluster_id,
        kind="",
        credential=credential,
        life_s=CREDENTIAL_LIFE.total_seconds(),
    )


async def _give(ctx: Context, tx: Tx, cluster: int) -> str:
    credential = make_token(TokenKind.AGENT, ctx.secret())
    await enrolment.add_credential(tx, cluster, hash_token(credential), CREDENTIAL_LIFE)
    return credential


async def _note(tx: Tx, cluster: int, cluster_id: str, action: str, origin: str) -> None:
    actor = Actor(kind=ActorKind.AGENT, id=cluster, name=cluster_id, origin=origin)
    await audit.add(tx, actor, [audit.Entry(action=action, object=f"cluster:{cluster_id}")])


async def _why_not(tx: Tx, hashed: bytes) -> NotAuthenticated:
    """What is wrong with a token. Whoever has one may know: nobody guesses 256 bits."""
    state = await enrolment.join_token_state(tx, hashed)
    words = {"used": "was used before", "expired": "has run out"}.get(state, "is unknown")
    return NotAuthenticated(
        f"the join token {words}",
        hint="Make another one: Clusters → Add, or `verderer clusters add`.",
        code=f"join_token_{state}",
    )


def _unknown_agent() -> NotAuthenticated:
    return NotAuthenticated(
        "the control plane does not know this agent's key",
        hint="It was revoked, or another agent joined: let it join anew with a join token.",
        code="unknown_agent",
    )


def _verify(public_key: bytes, signature: bytes, message: bytes) -> None:
    try:
        Ed25519PublicKey.from_public_bytes(public_key).verify(signature, message)
    except (InvalidSignature, ValueError):
        raise _unknown_agent() from None


def _now_ms(ctx: Context) -> int:
    return int(ctx.clock().timestamp() * 1000)
