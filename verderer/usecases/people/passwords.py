"""Hash passwords and compare them: argon2id, in two threads, so that the event loop goes on.

19 MiB and three passes take some 45 ms of a core, above what OWASP asks for. Two threads bound
the memory and leave cores to everybody else when many log in at once.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from argon2 import PasswordHasher
from argon2.exceptions import InvalidHashError, VerificationError

from verderer.core.errors import TooMany
from verderer.core.passwords import MAX_PASSWORD, canonical_password

T = TypeVar("T")

_HASHER = PasswordHasher(time_cost=3, memory_cost=19_456, parallelism=1)
_THREADS = ThreadPoolExecutor(2, thread_name_prefix="argon2")
_MOST_WAITING = 100
_waiting: set[object] = set()

# What an unknown user's password is compared with, so that it takes as long as a known one's: made
# with today's parameters from a password longer than any that is let through.
_NOBODY = (
    "$argon2id$v=19$m=19456,t=3,p=1$"
    "bQjTt/3MzlthrG2qrFH2Sg$K4txASpqZRQn6gTCzlUQUNwRfahibm9XvcdZ0nzI1VE"
)


async def hash_password(password: str) -> str:
    """What is kept of a password: algorithm, parameters, salt and hash in one text.

    Raises:
        TooMany: a hundred others wait for the same.
    """
    return await _in_thread(_hash, canonical_password(password))


async def verify_password(password: str, password_hash: str | None) -> bool:
    """Whether the password is the hashed one; takes the same time without a hash.

    Raises:
        TooMany: a hundred others wait for the same.
    """
    fits = await _in_thread(_verify, canonical_password(password), password_hash or _NOBODY)
    return fits and password_hash is not None


def outdated(password_hash: str) -> bool:
    """Whether it was made with other parameters than today's."""
    return _HASHER.check_needs_rehash(password_hash)


async def _in_thread(work: Callable[..., T], *arguments: str) -> T:
    if len(_waiting) >= _MOST_WAITING:
        raise TooMany("too many people log in at this moment", retry_after_s=2.0)
    mine = object()
    _waiting.add(mine)
    try:
        return await asyncio.get_running_loop().run_in_executor(_THREADS, work, *arguments)
    finally:
        _waiting.discard(mine)


def _hash(password: str) -> str:
    return _HASHER.hash(_bytes(password))


def _verify(password: str, password_hash: str) -> bool:
    if len(password) > MAX_PASSWORD:
        password = ""
    try:
        return _HASHER.verify(password_hash, _bytes(password))
    except (VerificationError, InvalidHashError):
        return False


def _bytes(password: str) -> bytes:
    return password.encode("utf-8", "surrogatepass")
