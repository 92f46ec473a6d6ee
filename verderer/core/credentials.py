"""What tokens and passwords look like. Chance, keys and the clock are arguments.

A token is a prefix that names its kind and 256 random bits in URL-safe base 64, so that a leaked
one is found by a search for the prefix. Only its SHA-256 is kept: nobody can guess 256 bits, so a
slow hash would add nothing. A step's token is not kept at all: it says which attempt it belongs
to and carries a signature (HMAC-SHA256) of the instance's key.
"""

from __future__ import annotations

import hashlib
import hmac
import re
import struct
from base64 import urlsafe_b64decode, urlsafe_b64encode
from dataclasses import dataclass
from enum import StrEnum

from verderer.core.model.attempt import AttemptKey

SECRET_BYTES = 32
HINT_LENGTH = 12
"""Characters of a token that its list shows: the prefix and 36 of its 256 bits."""
MAX_TOKEN_LENGTH = 128
SESSION_COOKIE = "verderer_session"
"""Name of the cookie that carries a browser's session token."""

_LABEL = b"verderer step token 1\x00"
_STEP = struct.Struct(">QIHIQ")  # run, step, attempt, project, expiry
_MAC_BYTES = 32
_RANDOM = re.compile(r"[A-Za-z0-9_-]{43}")
_ALPHABET = "0123456789abcdefghjkmnpqrstvwxyz"


class TokenKind(StrEnum):
    """The value is the prefix."""

    SESSION = "vrd_s_"  # a browser's
    USER = "vrd_u_"  # a program's, on behalf of a person
    AGENT = "vrd_a_"  # of one cluster
    JOIN = "vrd_j_"  # opens the door to one cluster's agent, once
    STEP = "vrd_t_"  # of one running attempt


_KINDS = {kind.value: kind for kind in TokenKind}


@dataclass(frozen=True, slots=True)
class StepClaim:
    """What a step's token says."""

    attempt: AttemptKey
    project: int
    expires_unix_s: int


def make_token(kind: TokenKind, secret: bytes) -> str:
    """Write `secret`, 32 random bytes, as a token.

    Raises:
        ValueError: it has another length, or steps' tokens are made by `make_step_token`.
    """
    if len(secret) != SECRET_BYTES or kind is TokenKind.STEP:
        raise ValueError("a token is made of 32 random bytes")
    return kind + _text(secret)


def kind_of(token: str) -> TokenKind | None:
    """Which kind `token` claims to be; None when nothing of ours looks like it."""
    kind = _KINDS.get(token[:6])
    if kind is None or len(token) > MAX_TOKEN_LENGTH or not token.isascii():
        return None
    return kind if kind is TokenKind.STEP or _RANDOM.fullmatch(token, 6) else None


def hash_token(token: str) -> bytes:
    """What is kept of a token."""
    return hashlib.sha256(token.encode()).digest()


def hint_of(token: str) -> str:
    """The start of a token, by which its owner recognises it."""
    return token[:HINT_LENGTH]


def make_step_token(key: bytes, claim: StepClaim) -> str:
    """Sign `claim` with the instance's `key`."""
    attempt = claim.attempt
    payload = _STEP.pack(
        attempt.run, attempt.step, attempt.number, claim.project, claim.expires_unix_s
    )
    return TokenKind.STEP + _text(payload + _sign(key, payload))


def read_step_token(key: bytes, token: str, *, now_unix_s: float) -> StepClaim | None:
    """What the token says, or None when this instance did not sign it or its time is over."""
    raw = _bytes(token.removeprefix(TokenKind.STEP))
    if not token.startswith(TokenKind.STEP) or len(raw) != _STEP.size + _MAC_BYTES:
        return None
    payload, signature = raw[: _STEP.size], raw[_STEP.size :]
    if not hmac.compare_digest(_sign(key, payload), signature):
        return None
    run, step, number, project, expires = _STEP.unpack(payload)
    if expires <= now_unix_s:
        return None
    return StepClaim(AttemptKey(run, step, number), project, expires)


def make_one_time_password(secret: bytes) -> str:
    """Twenty characters that are easy to copy from a screen: 100 of the bits of `secret`.

    Raises:
        ValueError: fewer than 13 bytes were given.
    """
    if len(secret) < 13:
        raise ValueError("a one-time password needs 13 random bytes")
    number = int.from_bytes(secret[:13], "big")
    letters = [_ALPHABET[number >> 5 * i & 31] for i in range(20)]
    return "-".join("".join(letters[i : i + 5]) for i in range(0, 20, 5))


def _sign(key: bytes, payload: bytes) -> bytes:
    return hmac.digest(key, _LABEL + payload, "sha256")


def _text(raw: bytes) -> str:
    return urlsafe_b64encode(raw).rstrip(b"=").decode()


def _bytes(text: str) -> bytes:
    try:
        raw = urlsafe_b64decode(text + "=" * (-len(text) % 4))
    except ValueError:
        return b""
    return raw if _text(raw) == text else b""  # one spelling only
