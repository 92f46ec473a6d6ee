"""What an agent signs to prove that it has its key, and when a signature is too old to count.

A join token opens the door once; from then on the agent is known by an Ed25519 key of its own
(RFC 8032), with which it fetches credentials that live for a day. The private half never leaves
the agent's machine.
"""

from __future__ import annotations

import struct
from datetime import timedelta
from typing import Final

from verderer.core.errors import Invalid, NotAuthenticated, Problem

KEY_BYTES: Final = 32
SIGNATURE_BYTES: Final = 64
CREDENTIAL_LIFE: Final = timedelta(hours=24)
"""The agent fetches the next one at half of it; both work until they run out."""
KEY_LIFE: Final = timedelta(days=30)
"""After this long an agent makes itself another key when it fetches a credential."""
JOIN_LIFE: Final = timedelta(hours=1)
LONGEST_JOIN_LIFE: Final = timedelta(days=7)
APART_S: Final = 300.0
"""How far the clocks of agent and control plane may be apart."""

_JOIN = b"verderer join 1\x00"
_RENEW = b"verderer renew 1\x00"
_MOMENT = struct.Struct(">q")


def join_message(token_hash: bytes, public_key: bytes, unix_ms: int) -> bytes:
    """The bytes to sign with the key that `public_key` belongs to."""
    return b"".join([_JOIN, _MOMENT.pack(unix_ms), public_key, token_hash])


def renew_message(cluster_id: str, public_key: bytes, unix_ms: int) -> bytes:
    """The bytes to sign with the known key, and with that of `public_key` when it is another."""
    return b"".join([_RENEW, _MOMENT.pack(unix_ms), public_key, cluster_id.encode()])


def check_sizes(public_key: bytes, *signatures: bytes) -> None:
    """Raise `Invalid` unless these have the lengths that Ed25519 gives them."""
    if len(public_key) != KEY_BYTES:
        problem = Problem(field="public_key", message=f"has {len(public_key)} bytes, not 32")
        raise Invalid("the public key is none of Ed25519", problems=[problem])
    for signature in signatures:
        if len(signature) != SIGNATURE_BYTES:
            problem = Problem(field="signature", message=f"has {len(signature)} bytes, not 64")
            raise Invalid("the signature is none of Ed25519", problems=[problem])


def check_moment(signed_ms: int, *, now_ms: int) -> None:
    """Refuse what was signed too long ago, or by a clock that is wrong.

    Raises:
        NotAuthenticated: `clock_skew`, with how far apart the clocks are.
    """
    apart_s = (signed_ms - now_ms) / 1000
    if abs(apart_s) <= APART_S:
        return
    where = "ahead of" if apart_s > 0 else "behind"
    raise NotAuthenticated(
        f"the agent's clock is {abs(apart_s):,.0f} s {where} the control plane's",
        hint="Set the clock of the agent's machine (NTP), or of the control plane's.",
        code="clock_skew",
    )
