"""Tickets by which the carrier of one step reads its inputs and writes its outputs."""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
from collections.abc import Sequence
from typing import Final

import msgspec

from verderer.core.errors import Invalid, NotAllowed, NotFound
from verderer.core.model.actor import Actor
from verderer.core.model.attempt import AttemptKey
from verderer.core.model.places import Owner, owner_of
from verderer.store.tables import attempts
from verderer.usecases.agents.grant_objects import grantable
from verderer.usecases.context import Context

MAX_KEYS: Final = 1000
_LABEL: Final = b"verderer carry v1"
_PREFIX: Final = "vrc_"


class Scope(msgspec.Struct, frozen=True, array_like=True):
    """What a ticket opens."""

    cluster: int
    attempt: str
    reads: tuple[str, ...] = ()
    writes: tuple[str, ...] = ()

    def covers(self, key: str, *, writing: bool) -> bool:
        """Whether the object is one of the step's own."""
        if writing:
            return any(key == one or key.startswith(f"{one}/") for one in self.writes)
        return any(key == one or (one[-1:] == "/" and key.startswith(one)) for one in self.reads)


async def issue(
    ctx: Context,
    actor: Actor,
    *,
    epoch: int,
    attempt: str,
    reads: Sequence[str],
    writes: Sequence[str],
) -> str:
    """A ticket for the files of an attempt that was given to the actor's cluster.

    Raises:
        Conflict: `stale_epoch`.
        NotFound: a file is not the attempt's to read or write.
        Invalid: too many files, or no attempt.
    """
    if len(reads) + len(writes) > MAX_KEYS:
        raise Invalid(f"a step may have at most {MAX_KEYS} inputs and outputs")
    try:
        key = AttemptKey.parse(attempt)
    except ValueError as error:
        raise Invalid(f"{attempt[:100]!r} is no attempt") from error
    outputs = tuple(one.rstrip("/") for one in writes)
    probes = [f"{one}x" if one.endswith("/") else one for one in reads]
    readable = await grantable(ctx, actor, epoch=epoch, writing=False, keys=probes)
    writable = await grantable(ctx, actor, epoch=epoch, writing=True, keys=outputs)
    allowed = {*readable, *(one for one in writable if _is_of(one, key))}
    for one in (*probes, *outputs):
        if one not in allowed:
            raise NotFound(f"{one[:300]!r} is not a file of {attempt}")
    scope = Scope(actor.id, attempt, tuple(reads), outputs)
    body = base64.urlsafe_b64encode(msgspec.msgpack.encode(scope)).decode()
    return f"{_PREFIX}{body}.{_signature(ctx, body)}"


async def opened(ctx: Context, ticket: str, *, writing: bool, keys: Sequence[str]) -> list[str]:
    """Those of `keys` that the ticket opens.

    Raises:
        NotAllowed: it is no ticket of ours, or its run is over.
        Invalid: too many keys.
    """
    if len(keys) > MAX_KEYS:
        raise Invalid(f"at most {MAX_KEYS} keys in one request")
    scope = _read(ctx, ticket)
    key = AttemptKey.parse(scope.attempt)
    async with ctx.db.reading() as tx:
        alive = await attempts.runs_live_on(tx, scope.cluster, [key.run])
        if not alive:
            raise NotAllowed("the run of this ticket is over", code="ticket_over")
        if writing:
            owned = [(project, key) for project, _ in alive]
            if not await attempts.given_to(tx, scope.cluster, owned):
                raise NotAllowed("the attempt of this ticket is over", code="ticket_over")
    return [one for one in keys if scope.covers(one, writing=writing)]


def _is_of(object_key: str, attempt: AttemptKey) -> bool:
    owner: Owner | None = owner_of(object_key)
    return owner is not None and owner.kind == "artifacts" and owner.attempt == attempt


def _read(ctx: Context, ticket: str) -> Scope:
    body, _, signature = ticket.removeprefix(_PREFIX).partition(".")
    genuine = hmac.compare_digest(_signature(ctx, body).encode(), signature.encode())
    if not (genuine and ticket.startswith(_PREFIX)):
        raise NotAllowed("this is no ticket of ours", code="ticket_invalid")
    try:
        return msgspec.msgpack.decode(base64.urlsafe_b64decode(body), type=Scope)
    except (msgspec.DecodeError, binascii.Error, ValueError) as error:
        raise NotAllowed("this ticket cannot be read", code="ticket_invalid") from error


def _signature(ctx: Context, body: str) -> str:
    key = hmac.new(ctx.key, _LABEL, hashlib.sha256).digest()
    return hmac.new(key, body.encode("utf-8", "replace"), hashlib.sha256).hexdigest()
