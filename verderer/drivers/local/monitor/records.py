"""Small JSON documents in an attempt's directory: there as a whole, or not there at all."""

from __future__ import annotations

import json
import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

ORDER = "order.json"
"""What is to be done: written before anything is started."""
CLAIM = "claim.json"
"""Who decides this attempt's fate; made once and never replaced."""
PROCESSES = "pid.json"
"""What runs, once all of it does."""
STOP = "stop.json"
"""Somebody wants it to end."""
LEASE = "lease.json"
"""In the root: until when, by the clock of `lease.now`, leased attempts may go on."""
END = "end.json"
"""How it ended."""

_READ = os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC
_WRITE = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC
_LARGEST = 64 * 1024 * 1024


def read(home: str, name: str) -> dict[str, Any] | None:
    """The document, or None when there is none that can be understood."""
    try:
        fd = os.open(os.path.join(home, name), _READ)
    except OSError:
        return None
    try:
        document = json.loads(_read_all(fd))
    except (OSError, ValueError):
        return None
    finally:
        os.close(fd)
    return document if isinstance(document, dict) else None


def write(home: str, name: str, document: dict[str, Any], *, durable: bool = False) -> None:
    """Put the document in place; with `durable` it is on the disk on return.

    Raises:
        OSError: no space, no permission.
    """
    draft = _draft(home, name, document, durable=durable)
    os.rename(draft, os.path.join(home, name))


def claim(home: str, document: dict[str, Any]) -> bool:
    """Make `CLAIM` unless it exists; False when somebody else was first.

    A hard link is the one call that refuses to replace and shows the content from the first
    instant, so there is never a claim that does not say whose it is.
    """
    draft = _draft(home, CLAIM, document, durable=False)
    try:
        os.link(draft, os.path.join(home, CLAIM))
    except FileExistsError:
        return False
    finally:
        os.unlink(draft)
    return True


def sync_directory(path: str) -> None:
    """Put the names in a directory on the disk."""
    fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)


class Reserved:
    """Room on the disk for a document that must not fail to be written later."""

    def __init__(self, home: str, name: str, size: int) -> None:
        """Raises OSError when the disk is full now, before anything was started."""
        self._target = os.path.join(home, name)
        self._draft = os.path.join(home, f".{name}.reserved")
        self._fd = os.open(self._draft, _WRITE, 0o600)
        os.posix_fallocate(self._fd, 0, size)

    def publish(self, document: dict[str, Any], *, durable: bool = False) -> None:
        """Put the document in place of the reservation. Raises OSError; may be called again."""
        data = json.dumps(document).encode()
        os.lseek(self._fd, 0, os.SEEK_SET)
        _write_all(self._fd, data)
        os.ftruncate(self._fd, len(data))
        if durable:
            os.fsync(self._fd)
        os.rename(self._draft, self._target)
        os.close(self._fd)


def _draft(home: str, name: str, document: dict[str, Any], *, durable: bool) -> str:
    draft = os.path.join(home, f".{name}.{os.getpid()}")
    fd = os.open(draft, _WRITE, 0o600)
    try:
        _write_all(fd, json.dumps(document).encode())
        if durable:
            os.fsync(fd)
    finally:
        os.close(fd)
    return draft


def _read_all(fd: int) -> bytes:
    parts: list[bytes] = []
    left = _LARGEST
    while left > 0 and (part := os.read(fd, min(left, 1 << 16))):
        parts.append(part)
        left -= len(part)
    return b"".join(parts)


def _write_all(fd: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(fd, view) :]
