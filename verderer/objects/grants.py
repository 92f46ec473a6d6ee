"""Short-lived access to single objects for agents and browsers, without our credentials.

On S3 a grant is a presigned URL and the bytes never touch us. Elsewhere it is a URL of our own,
signed and expiring, which the object route checks with `LocalGrants.verify`.
"""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Literal, Protocol, TypeAlias
from urllib.parse import quote, urlencode

from verderer.core.errors import NotAllowed
from verderer.objects.config import Backend
from verderer.objects.keys import check_key, check_prefix
from verderer.objects.store import ObjectStore

Method: TypeAlias = Literal["GET", "PUT"]
MAX_TTL_S = 7 * 24 * 3600
"""S3's own limit for a presigned URL."""
MIN_INSTANCE_KEY_BYTES = 16
_LABEL = b"verderer objects grant v1"
_METHODS = ("GET", "PUT")


@dataclass(frozen=True, slots=True)
class PrefixGrant:
    """Access to every object under a prefix; three texts that can travel to an agent."""

    base_url: str
    prefix: str
    query: str

    def url(self, key: str) -> str:
        """The address of one object.

        Raises:
            NotAllowed: the key is not under the prefix.
        """
        if not check_key(key).startswith(self.prefix):
            raise NotAllowed(f"object {key!r} is not under {self.prefix!r}", code="grant_invalid")
        return f"{self.base_url}{quote(key, safe='/')}?{self.query}"


class Grants(Protocol):
    """Gives access for a while."""

    async def grant(self, keys: Sequence[str], method: Method, ttl_s: float) -> dict[str, str]:
        """A URL for each key that allows `method` on it for `ttl_s` seconds.

        Raises:
            Invalid: a key is not one.
        """
        ...

    async def grant_prefix(self, prefix: str, method: Method, ttl_s: float) -> PrefixGrant | None:
        """Access to everything under `prefix`, or None where each key needs a URL of its own."""
        ...


def open_grants(
    store: ObjectStore, *, public_url: str, instance_key: bytes, clock: Callable[[], float]
) -> Grants:
    """The grants that fit the store; `clock` gives Unix seconds, `public_url` is our address."""
    if store.backend is Backend.S3:
        return PresignedGrants(store)
    return LocalGrants(public_url=public_url, instance_key=instance_key, clock=clock)


class PresignedGrants:
    """URLs that the S3 server itself checks."""

    def __init__(self, store: ObjectStore) -> None:
        self._store = store

    async def grant(self, keys: Sequence[str], method: Method, ttl_s: float) -> dict[str, str]:
        """See `Grants.grant`."""
        _check(method, ttl_s)
        return await self._store.sign(keys, method, timedelta(seconds=ttl_s))

    async def grant_prefix(self, prefix: str, method: Method, ttl_s: float) -> PrefixGrant | None:
        """See `Grants.grant_prefix`; S3 signs single keys only."""
        _check(method, ttl_s)
        check_prefix(prefix)
        return None


class LocalGrants:
    """URLs of our own: `{public_url}/objects/{key}?m=METHOD&e=EXPIRY&s=SIGNATURE`.

    The signature covers method, expiry and key or prefix (`p=PREFIX`). Every server that knows the
    instance's key can check it; nothing is stored. A GET grant also allows HEAD.
    """

    def __init__(self, *, public_url: str, instance_key: bytes, clock: Callable[[], float]) -> None:
        if len(instance_key) < MIN_INSTANCE_KEY_BYTES:
            raise ValueError("the instance's key is too short to sign with")
        self._base_url = f"{public_url.rstrip('/')}/objects/"
        # A key of its own, so that a signature made here is worth nothing elsewhere.
        self._key = hmac.new(instance_key, _LABEL, hashlib.sha256).digest()
        self._clock = clock

    async def grant(self, keys: Sequence[str], method: Method, ttl_s: float) -> dict[str, str]:
        """See `Grants.grant`."""
        _check(method, ttl_s)
        expiry = self._expiry(ttl_s)
        return {key: self._url(check_key(key), method, expiry) for key in keys}

    async def grant_prefix(self, prefix: str, method: Method, ttl_s: float) -> PrefixGrant | None:
        """See `Grants.grant_prefix`.

        Raises:
            Invalid: the prefix is not one, or is empty: nobody is granted everything.
        """
        if not prefix:
            check_key(prefix)
        check_prefix(prefix)
        _check(method, ttl_s)
        expiry = self._expiry(ttl_s)
        signature = self._signature("prefix", method, expiry, prefix)
        query = urlencode({"m": method, "p": prefix, "e": expiry, "s": signature})
        return PrefixGrant(self._base_url, prefix, query)

    def verify(self, method: str, key: str, query: Mapping[str, str], now: float) -> None:
        """Let a request pass, or not; `now` is Unix seconds, `key` and `query` are unquoted.

        Raises:
            NotAllowed: code `grant_invalid`, or `grant_expired` when a new grant is needed.
            Invalid: the key is not one.
        """
        check_key(key)
        granted, expiry, prefix = query.get("m", ""), query.get("e", ""), query.get("p")
        subject = key if prefix is None else prefix
        kind = "key" if prefix is None else "prefix"
        expected = self._signature(kind, granted, expiry, subject)
        given = query.get("s", "")
        # The comparison comes first and takes the same time whatever was wrong.
        genuine = hmac.compare_digest(expected.encode(), given.encode("utf-8", "replace"))
        wanted = "GET" if method == "HEAD" else method
        if not genuine or granted not in _METHODS or wanted != granted:
            raise _refused("this address is not valid for this request", "grant_invalid")
        if prefix is not None and not (prefix and key.startswith(prefix)):
            raise _refused("this address is not valid for this object", "grant_invalid")
        if now >= int(expiry):
            raise _refused("this address has expired", "grant_expired")

    def _url(self, key: str, method: str, expiry: str) -> str:
        query = {"m": method, "e": expiry, "s": self._signature("key", method, expiry, key)}
        return f"{self._base_url}{quote(key, safe='/')}?{urlencode(query)}"

    def _expiry(self, ttl_s: float) -> str:
        return str(int(self._clock() + ttl_s))

    def _signature(self, kind: str, method: str, expiry: str, subject: str) -> str:
        # No part but the last may hold a line feed, so two messages are never the same text.
        parts = [kind, method, expiry, subject]
        message = "\n".join(part.replace("\n", " ") for part in parts)
        return hmac.new(self._key, message.encode("utf-8", "replace"), hashlib.sha256).hexdigest()


def _check(method: str, ttl_s: float) -> None:
    if method not in _METHODS:
        raise ValueError(f"a grant is for one of {_METHODS}")
    if not 1 <= ttl_s <= MAX_TTL_S:
        raise ValueError(f"a grant lasts at least 1 and at most {MAX_TTL_S} seconds")


def _refused(message: str, code: str) -> NotAllowed:
    return NotAllowed(message, code=code, hint="ask for a new address")
