"""Reads back what a program wrote into its file on the shared folder, while it is being written."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

from verderer.drivers.contract import LogPiece

MAX_PIECE: Final = 256 * 1024
"""Bytes in one piece at most."""
_READ: Final = os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC


def read_piece(path: Path, offset: int) -> LogPiece | None:
    """The next bytes from `offset` on; None when there are none now.

    Their time is that of the last write: for who follows it, about when they came. The file is
    opened anew each time, which is what makes a network file system look at the server.

    Raises:
        OSError: the file server does not give back what it has.
    """
    try:
        descriptor = os.open(path, _READ)
    except FileNotFoundError:
        return None
    try:
        data = os.pread(descriptor, MAX_PIECE, offset)
        unix_ms = os.fstat(descriptor).st_mtime_ns // 1_000_000
    finally:
        os.close(descriptor)
    return LogPiece(offset=offset, unix_ms=unix_ms, data=data) if data else None


def hole(offset: int, until: int) -> LogPiece:
    """What was written and cannot be read any more."""
    return LogPiece(
        offset=offset, unix_ms=0, lost=until - offset, reason="not on the shared folder any more"
    )
