"""Where an agent's identity is kept: a file that only its user reads, or what a cluster offers."""

from __future__ import annotations

import os
import secrets
from pathlib import Path
from typing import Final, Protocol

import msgspec

from verderer.core.errors import Fault

NOBODY: Final = ""
"""The cluster of an identity that has not joined any."""


class Identity(msgspec.Struct, frozen=True, kw_only=True):
    """A key, and the credential of the moment. Secret from end to end."""

    cluster: str
    private_key: bytes
    key_made_unix_s: float
    credential: str
    renew_unix_s: float
    """When to fetch the next credential."""
    ends_unix_s: float
    """When this one stops working."""
    next_key: bytes | None = None
    """Sent to the control plane, and perhaps taken there: the answer has not been seen."""

    @property
    def joined(self) -> bool:
        """Whether a control plane has taken the key."""
        return self.cluster != NOBODY

    def __repr__(self) -> str:
        return f"Identity({self.cluster!r})"


class Keeper(Protocol):
    """One place for one identity."""

    async def load(self) -> Identity | None:
        """What was saved last, or None. Raises `Fault`."""
        ...

    async def save(self, identity: Identity) -> None:
        """Replace it; on return it survives a power cut. Raises `Fault`."""
        ...


class FileKeeper:
    """A file of mode 0600, replaced as a whole."""

    def __init__(self, path: Path) -> None:
        self.path = path

    async def load(self) -> Identity | None:
        try:
            text = self.path.read_bytes()
        except FileNotFoundError:
            return None
        except OSError as error:
            raise Fault(f"the agent's identity cannot be read: {error}") from error
        return decode(text, str(self.path))

    async def save(self, identity: Identity) -> None:
        scratch = self.path.with_name(f".{self.path.name}.{secrets.token_hex(4)}")
        try:
            self.path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            handle = os.open(scratch, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600)
            with os.fdopen(handle, "wb") as file:
                file.write(msgspec.json.encode(identity))
                file.flush()
                os.fsync(file.fileno())
            scratch.replace(self.path)
        except OSError as error:
            raise Fault(
                f"the agent's identity cannot be kept: {error}",
                hint=f"Give the agent's user the right to write {self.path.parent}.",
            ) from error
        finally:
            scratch.unlink(missing_ok=True)


def decode(text: bytes, place: str) -> Identity:
    """Read what `save` wrote. Raises `Fault` for anything else."""
    try:
        return msgspec.json.decode(text, type=Identity)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise Fault(
            f"the agent's identity in {place} is damaged",
            hint="Remove it and let the agent join anew with a join token.",
        ) from error
