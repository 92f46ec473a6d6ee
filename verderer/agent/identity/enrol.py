"""Join with a token, and come for the next credential with a signature."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

import msgspec

from verderer.agent.identity.keeping import NOBODY, Identity, Keeper
from verderer.agent.identity.signing import Signature, sign
from verderer.core.credentials import hash_token
from verderer.core.enrolment import KEY_LIFE, join_message, renew_message
from verderer.core.errors import Fault, NotAuthenticated
from verderer.wire.client import ApiClient
from verderer.wire.enrolment import Admission, JoinIn, RenewIn

_PATH = "/api/v1/agent"


@dataclass(frozen=True, slots=True, kw_only=True)
class Door:
    """Where the control plane is, and how its certificate is checked."""

    server_url: str
    ca_file: str | None = None
    clock: Callable[[], float] = time.time

    def client(self) -> ApiClient:
        return ApiClient(self.server_url, ca_file=self.ca_file)

    def now_ms(self) -> int:
        return int(self.clock() * 1000)


async def join(door: Door, keeper: Keeper, *, token: str, kind: str, version: str) -> Identity:
    """Make a key, spend the token, keep what is given for it.

    Raises:
        NotAuthenticated: the token is unknown, used or out of time, or the clocks are apart.
        Refusal: it is for a cluster of another kind.
        Fault: the control plane does not answer, or the identity cannot be kept.
    """
    made = await sign(b"")
    fresh = Identity(
        cluster=NOBODY,
        private_key=made.private_key,
        key_made_unix_s=door.clock(),
        credential="",
        renew_unix_s=0.0,
        ends_unix_s=0.0,
    )
    # Before the token is spent: what came of it would be lost if it could not be kept. An
    # identity that works stays until there is another one.
    await keeper.save(await _working(keeper) or fresh)
    now_ms = door.now_ms()
    signed = await sign(join_message(hash_token(token), made.public_key, now_ms), made.private_key)
    asked = JoinIn(
        token=token,
        public_key=signed.public_key,
        unix_ms=now_ms,
        signature=signed.signature,
        kind=kind,
        version=version,
    )
    async with door.client() as client:
        given = await client.post(f"{_PATH}/join", asked, Admission)
    known = msgspec.structs.replace(fresh, cluster=given.cluster)
    identity = _with(known, given, door.clock())
    await keeper.save(identity)
    return identity


async def _working(keeper: Keeper) -> Identity | None:
    try:
        known = await keeper.load()
    except Fault:
        return None
    return known if known is not None and known.joined else None


async def renew(door: Door, keeper: Keeper, identity: Identity) -> Identity:
    """Fetch the next credential, and change an old key.

    The next key is kept before it is sent: a crash in between leaves an agent that is known by
    one of the two.

    Raises:
        NotAuthenticated: the control plane knows neither key (any more), or clocks are apart.
        Fault: it does not answer, or the identity cannot be kept.
    """
    if identity.next_key is None:
        if door.clock() - identity.key_made_unix_s < KEY_LIFE.total_seconds():
            return await _renew(door, keeper, identity, identity.private_key)
        fresh = await sign(b"")
        identity = msgspec.structs.replace(identity, next_key=fresh.private_key)
        await keeper.save(identity)
    assert identity.next_key is not None  # noqa: S101 - made above
    try:
        return await _renew(door, keeper, identity, identity.next_key)
    except NotAuthenticated as error:
        if error.code != "unknown_agent":
            raise
    # It may have been taken by a request whose answer never came.
    moved = msgspec.structs.replace(identity, private_key=identity.next_key)
    return await _renew(door, keeper, moved, identity.next_key)


async def _renew(door: Door, keeper: Keeper, identity: Identity, key: bytes) -> Identity:
    known = await sign(b"", identity.private_key)
    public = known.public_key if key == identity.private_key else (await sign(b"", key)).public_key
    now_ms = door.now_ms()
    message = renew_message(identity.cluster, public, now_ms)
    old: Signature = await sign(message, identity.private_key)
    new = old if key == identity.private_key else await sign(message, key)
    asked = RenewIn(
        cluster=identity.cluster,
        public_key=public,
        unix_ms=now_ms,
        signature=old.signature,
        new_signature=new.signature,
    )
    async with door.client() as client:
        given = await client.post(f"{_PATH}/renew", asked, Admission)
    now = door.clock()
    made = identity.key_made_unix_s if key == identity.private_key else now
    settled = msgspec.structs.replace(
        identity, private_key=key, next_key=None, key_made_unix_s=made
    )
    fresh = _with(settled, given, now)
    await keeper.save(fresh)
    return fresh


def _with(identity: Identity, given: Admission, now: float) -> Identity:
    return msgspec.structs.replace(
        identity,
        credential=given.credential,
        renew_unix_s=now + given.life_s / 2,
        ends_unix_s=now + given.life_s,
    )
