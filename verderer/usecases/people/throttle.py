"""Slow down who guesses passwords: ten failures in five minutes, for an account or an origin.

Counted in PostgreSQL, so that a restart or a second server is no new chance. An attempt counts
from its beginning and is taken back when it succeeds: a hundred at the same moment are not a
hundred guesses.
"""

from __future__ import annotations

import hmac
from datetime import timedelta
from ipaddress import IPv6Address, ip_address, ip_network

from verderer.core.errors import TooMany
from verderer.store.database import Tx
from verderer.store.tables import people
from verderer.usecases.context import Context

TRIES = 10
WINDOW = timedelta(minutes=5)


class Throttled(TooMany):
    """Too many attempts; `first` for the one that reached the limit."""

    def __init__(self, *, retry_after_s: float, first: bool) -> None:
        super().__init__(
            "too many failed attempts to log in",
            retry_after_s=retry_after_s,
            hint="Wait, or ask an admin to reset the password.",
        )
        self.first = first


async def count_try(ctx: Context, *, email: str, origin: str) -> list[bytes]:
    """Count an attempt; give the result to `forgive_try` once it has succeeded.

    Raises:
        Throttled: there were too many; this one must not be tried.
    """
    keys = _keys(ctx.key, email, origin)
    async with ctx.db.transaction() as tx:
        tries, wait_s = await people.count_try(tx, keys, window=WINDOW)
    if tries > TRIES:
        raise Throttled(retry_after_s=max(1.0, wait_s), first=tries == TRIES + 1)
    return keys


async def forgive_try(tx: Tx, keys: list[bytes]) -> None:
    """Take the attempt back."""
    await people.forgive_try(tx, keys)


def _keys(key: bytes, email: str, origin: str) -> list[bytes]:
    """Keyed hashes, since what was typed as e-mail address may be a password."""
    names = [f"account {email.strip().lower()}"]
    if origin:
        names.append(f"origin {_network(origin)}")
    return [hmac.digest(key, f"login {n}".encode("utf-8", "replace"), "sha256")[:16] for n in names]


def _network(origin: str) -> str:
    """An IPv6 customer has a whole /64 of addresses to come from."""
    try:
        address = ip_address(origin)
    except ValueError:
        return origin
    if isinstance(address, IPv6Address) and address.ipv4_mapped is None:
        return str(ip_network((address, 64), strict=False))
    return str(address)
