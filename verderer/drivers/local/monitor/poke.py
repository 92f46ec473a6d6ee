"""Tells the agent, if there is one, that it should look at an attempt."""

from __future__ import annotations

import os

FIFO = "pokes"
"""In the root directory. A line is a letter and a key; losing one costs time, never truth."""
STATE = b"s"
OUTPUT = b"o"

_OUTPUT_EVERY_S = 0.05


class Pokes:
    """Never blocks and never fails: nobody may be listening."""

    def __init__(self, root: str, key: str) -> None:
        self._path = os.path.join(root, FIFO)
        self._line = key.encode() + b"\n"
        self._fd = -1
        self._last = 0.0
        self.due: float | None = None
        """When `flush` has something to send, on the monotonic clock."""

    def state(self) -> None:
        """The attempt's state changed."""
        self._send(STATE)

    def output(self, now: float) -> None:
        """There is new output: told at once after a pause, otherwise 20 times a second."""
        if self.due is None:
            self.due = max(now, self._last + _OUTPUT_EVERY_S)
        self.flush(now)

    def flush(self, now: float) -> None:
        """Send what is due."""
        if self.due is not None and now >= self.due:
            self.due = None
            self._last = now
            self._send(OUTPUT)

    def _send(self, kind: bytes) -> None:
        try:
            if self._fd < 0:
                self._fd = os.open(self._path, os.O_WRONLY | os.O_NONBLOCK | os.O_CLOEXEC)
            os.write(self._fd, kind + self._line)
        except BlockingIOError:
            pass
        except OSError:
            if self._fd >= 0:
                os.close(self._fd)
            self._fd = -1
