"""Hears the monitors: one FIFO in the root directory that outlives every agent."""

from __future__ import annotations

import asyncio
import contextlib
import os
from collections.abc import Callable
from pathlib import Path

from verderer.core.model.attempt import AttemptKey
from verderer.drivers.local.monitor import poke

_PIPE_BYTES = 1 << 16


class Wakes:
    """Calls back for each poke. Pokes may be lost when nobody reads: then `overflow` is called."""

    def __init__(
        self,
        path: Path,
        *,
        state: Callable[[AttemptKey], None],
        output: Callable[[AttemptKey], None],
        overflow: Callable[[], None],
    ) -> None:
        """Start listening in the running loop. Raises OSError."""
        with contextlib.suppress(FileExistsError):
            os.mkfifo(path, 0o600)
        # Open for writing too: without a writer of our own, end-of-file would spin the loop.
        self._fd = os.open(path, os.O_RDWR | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC)
        self._calls = {poke.STATE: state, poke.OUTPUT: output}
        self._overflow = overflow
        self._loop = asyncio.get_running_loop()
        self._loop.add_reader(self._fd, self._read)

    def close(self) -> None:
        """Stop listening."""
        self._loop.remove_reader(self._fd)
        os.close(self._fd)

    def _read(self) -> None:
        try:
            data = os.read(self._fd, _PIPE_BYTES)
        except BlockingIOError:
            return
        for line in dict.fromkeys(data.splitlines()):
            call = self._calls.get(line[:1])
            with contextlib.suppress(ValueError):
                if call is not None:
                    call(AttemptKey.parse(line[1:].decode("ascii", "replace")))
        if len(data) > _PIPE_BYTES - os.fpathconf(self._fd, "PC_PIPE_BUF"):
            self._overflow()
