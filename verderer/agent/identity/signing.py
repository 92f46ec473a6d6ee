"""Makes a key and signs, in a process of its own that lives for half a second.

The library for it takes 8 MB that an agent needs twice a day, and the agent promises to be small.
`signer` is that process.
"""

from __future__ import annotations

import asyncio
import sys
from typing import Final

import msgspec

from verderer.core.errors import Fault

_WITHIN_S: Final = 30.0
_PROGRAM: Final = "verderer.agent.identity.signer"


class Request(msgspec.Struct, kw_only=True):
    """Sign `message` with `private_key`; without one, make a key first."""

    message: bytes
    private_key: bytes | None = None


class Signature(msgspec.Struct, kw_only=True):
    """An Ed25519 signature and the key that made it, both halves raw."""

    private_key: bytes
    public_key: bytes
    signature: bytes


async def sign(message: bytes, private_key: bytes | None = None) -> Signature:
    """The signature of `message`; a new key's when none is given.

    Raises:
        Fault: no process can be made, or the library is missing.
    """
    command = (sys.executable, "-P", "-m", _PROGRAM)
    pipe = asyncio.subprocess.PIPE
    asked = msgspec.json.encode(Request(message=message, private_key=private_key))
    try:
        child = await asyncio.create_subprocess_exec(*command, stdin=pipe, stdout=pipe, stderr=pipe)
        async with asyncio.timeout(_WITHIN_S):
            said, trouble = await child.communicate(asked)
        return msgspec.json.decode(said, type=Signature)
    except (OSError, TimeoutError) as error:
        raise Fault(f"the agent's key cannot be used: {str(error) or 'no answer'}") from error
    except msgspec.DecodeError as error:
        last = trouble.decode(errors="replace").strip().rpartition("\n")[2]
        raise Fault(
            f"the agent's key cannot be used: {last[:300] or 'no answer'}",
            hint="Is the package `cryptography` installed beside the agent?",
        ) from error
