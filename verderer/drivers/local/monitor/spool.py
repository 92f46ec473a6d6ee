"""The output of one replica on disk: segments of raw bytes, with marks in time beside them.

A segment is named by the offset of its first byte in the whole output of the replica, lost bytes
counted, so that a hole shows as a step between one segment's end and the next one's name. The
name also says why: `.log` follows without a hole, `.spool.log` and `.space.log` come after one.
The marks in `.idx` are pairs of (offset, unix milliseconds), eight bytes each.
"""

from __future__ import annotations

import os
import struct

MARK = struct.Struct("<QQ")
MARK_EVERY_MS = 100
SEGMENT_BYTES = 8 * 1024 * 1024

SPOOL = "spool"
SPACE = "space"
REASONS = {SPOOL: "spool full", SPACE: "no space left on the disk"}

READ_BYTES = 1 << 16
"""The most that is read from a program at a time, and so the room that there must be."""
PATIENCE_S = 5.0
"""How long a full spool holds the program back before its output is dropped."""
_RETRY_MS = 200

_APPEND = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW | os.O_CLOEXEC


class LogWriter:
    """Appends; on a full spool or disk it counts what it cannot keep and carries on."""

    def __init__(self, directory: str, *, limit: int) -> None:
        """`limit` bytes may lie in `directory` at a time; whoever ships them deletes segments.

        Raises:
            OSError: the directory cannot be made.
        """
        os.makedirs(directory, mode=0o700, exist_ok=True)
        self.offset = 0
        """Bytes that the program wrote so far."""
        self.hole = ""
        """Why the last bytes are missing; empty when they are there."""
        self._directory = directory
        self._limit = limit
        self._segment_bytes = max(1, min(SEGMENT_BYTES, limit // 4))
        self._headroom = min(READ_BYTES, self._segment_bytes)
        self._log = -1
        self._index = -1
        self._size = 0
        self._marked_ms = 0
        self._kept: list[tuple[str, int]] = []
        self._full_since: float | None = None
        self._retry_at_ms = 0

    def wants(self, now: float) -> bool:
        """Whether to read on: False while waiting a little for room. `now` is monotonic."""
        if self._room(self._headroom):
            self._full_since = None
            return True
        if self._full_since is None:
            self._full_since = now
        return now - self._full_since >= PATIENCE_S

    def write(self, data: bytes, unix_ms: int) -> None:
        """Keep `data`, or count it as lost. Never raises for a full disk."""
        if not self._room(max(len(data), self._headroom)):
            self._lose(len(data), SPOOL)
            return
        if self.hole == SPACE and unix_ms < self._retry_at_ms:
            self._lose(len(data), SPACE)
            return
        view = memoryview(data)
        try:
            while view:
                if self._log < 0 or self._size >= self._segment_bytes:
                    self._open_segment()
                self._mark(unix_ms)
                done = os.write(self._log, view[: self._segment_bytes - self._size])
                self._size += done
                self.offset += done
                view = view[done:]
        except OSError:
            self._lose(len(view), SPACE)
            self._retry_at_ms = unix_ms + _RETRY_MS

    def close(self) -> None:
        """Finish the last segment."""
        if self._log >= 0:
            os.close(self._log)
            os.close(self._index)
            self._kept.append((self._path, self._size))
        self._log = self._index = -1
        self._size = 0

    def _room(self, wanted: int) -> bool:
        used = self._size + sum(size for _, size in self._kept)
        if used + wanted <= self._limit:
            return True
        self._kept = [(path, size) for path, size in self._kept if os.path.exists(path)]
        return self._size + sum(size for _, size in self._kept) + wanted <= self._limit

    def _lose(self, count: int, why: str) -> None:
        self.close()
        self.offset += count
        self.hole = why

    def _open_segment(self) -> None:
        self.close()
        stem = os.path.join(self._directory, f"{self.offset:020d}")
        self._path = f"{stem}.{self.hole}.log" if self.hole else f"{stem}.log"
        self._index = os.open(f"{stem}.idx", _APPEND, 0o600)
        try:
            self._log = os.open(self._path, _APPEND, 0o600)
        except OSError:
            os.close(self._index)
            self._index = -1
            raise
        self.hole = ""
        self._marked_ms = 0

    def _mark(self, unix_ms: int) -> None:
        if unix_ms - self._marked_ms >= MARK_EVERY_MS or unix_ms < self._marked_ms:
            os.write(self._index, MARK.pack(self.offset, unix_ms))
            self._marked_ms = unix_ms
