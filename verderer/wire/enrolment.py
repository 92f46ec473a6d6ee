"""How an agent joins, and how it comes for its next credential: `/api/v1/agent/join`, `…/renew`.

Neither needs a credential: the first has a join token, the second a signature of the agent's key.
Keys and signatures are those of Ed25519, in base 64.
"""

from __future__ import annotations

from typing import Annotated

import msgspec
from msgspec import Meta

Short = Annotated[str, Meta(max_length=200)]
Raw = Annotated[bytes, Meta(max_length=64)]


class JoinIn(msgspec.Struct, kw_only=True):
    """`signature` is over `core.enrolment.join_message`."""

    token: Short
    public_key: Raw
    unix_ms: int
    signature: Raw
    kind: Short
    version: Short = ""


class RenewIn(msgspec.Struct, kw_only=True):
    """Both signatures are over `core.enrolment.renew_message`."""

    cluster: Short
    public_key: Raw
    """The present one, or the next one."""
    unix_ms: int
    signature: Raw
    """By the key that the control plane knows."""
    new_signature: Raw
    """By the key of `public_key`."""


class Admission(msgspec.Struct, kw_only=True):
    """What the agent shows from now on, for `life_s` seconds."""

    cluster: str
    credential: str
    life_s: float
    server_unix_ms: int
    kind: str = ""
