"""The one log of all processes, on standard error, each line marked with who wrote it."""

from __future__ import annotations

import asyncio
import io
import json
import sys
import time
from collections import deque
from collections.abc import Sequence
from typing import TextIO

_LONGEST_LINE = 65536
_CHUNK = 65536
_COLOURS = (36, 32, 35, 34, 33, 31)
_NAME_WIDTH = 9


class LogStream:
    """Merges lines. As text each gets its role in front; as JSON each is one document.

    A role's own lines are JSON already and say their role; what else it writes (a traceback of
    the interpreter, a library's print) is wrapped.
    """

    def __init__(self, out: TextIO | None = None, *, text: bool, colours: bool) -> None:
        self._out = out or sys.stderr
        self._text = text
        self._colours = colours
        self._seen: dict[str, int] = {}

    def write(self, role: str, line: str) -> None:
        """Write one line of `role`."""
        if self._text:
            shown = f"{self._mark(role)} {line}"
        elif line.startswith("{"):
            shown = line
        else:
            now = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
            shown = json.dumps(
                {"timestamp": now, "level": "info", "event": line, "role": role},
                ensure_ascii=False,
                separators=(",", ":"),
            )
        try:
            self._out.write(shown + "\n")
            self._out.flush()
        except (OSError, ValueError):
            pass  # nobody reads any more (a closed terminal or pipe): keep the platform running

    def _mark(self, role: str) -> str:
        name = f"{role:<{_NAME_WIDTH}} |"
        if not self._colours:
            return name
        colour = _COLOURS[self._seen.setdefault(role, len(self._seen)) % len(_COLOURS)]
        return f"\x1b[{colour}m{name}\x1b[0m"

    def voice(self, role: str) -> TextIO:
        """A file whose lines become lines of `role`: for the supervisor's own log."""
        return _Voice(self, role)

    async def follow(self, role: str, pipe: asyncio.StreamReader, tail: deque[str]) -> None:
        """Write all that comes through `pipe` until it ends; `tail` keeps the last lines.

        A line longer than 64 KiB is written in pieces.
        """
        rest = b""
        while chunk := await pipe.read(_CHUNK):
            *lines, rest = (rest + chunk).split(b"\n")
            if len(rest) >= _LONGEST_LINE:
                lines.append(rest)
                rest = b""
            for line in lines:
                self._take(role, line, tail)
        if rest:
            self._take(role, rest, tail)

    def _take(self, role: str, line: bytes, tail: deque[str]) -> None:
        text = line.decode(errors="replace").rstrip("\r")
        tail.append(text)
        self.write(role, text)


def last_words(tail: Sequence[str]) -> str:
    """Why a process ended, as far as its last lines say: its last event, or all that is there."""
    if not tail:
        return "it said nothing"
    try:
        event = json.loads(tail[-1])
        reason = str(event.get("exception", "")).strip().rpartition("\n")[2]
        parts = (event["event"], reason, event.get("hint"))
    except (ValueError, KeyError, AttributeError, TypeError):
        return "\n" + "\n".join(tail)
    return ": ".join(str(part) for part in parts if part)


class _Voice(io.StringIO):
    def __init__(self, stream: LogStream, role: str) -> None:
        super().__init__()
        self._stream = stream
        self._role = role

    def write(self, text: str) -> int:
        for line in filter(None, text.split("\n")):
            self._stream.write(self._role, line)
        return len(text)
