"""Takes apart what `pods/log?timestamps=true` answers: a time, a space, the line. No I/O."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from verderer.drivers.kubernetes.seen.clocks import unix_ns

MAX_HELD: Final = 64 * 1024
"""Bytes of one line that are held before they are passed on as a part of it."""
_MAX_STAMP: Final = 40


@dataclass(frozen=True, slots=True)
class Part:
    """Consecutive bytes of one line."""

    stamp_ns: int
    data: bytes
    first: bool
    """The line begins with it."""
    last: bool
    """It ends with the line's end."""


class LineReader:
    """Fed with bytes cut anywhere; gives the same parts, but for where long lines are cut."""

    def __init__(self) -> None:
        self._held = b""
        self._stamp: int | None = None
        self._first = True

    def feed(self, data: bytes) -> Iterator[Part]:
        """Parts that `data` completes."""
        self._held += data
        while self._held:
            if self._stamp is None and not self._read_stamp():
                return
            end = self._held.find(b"\n")
            if end < 0 and len(self._held) < MAX_HELD:
                return
            yield self._cut(end + 1 if end >= 0 else len(self._held), last=end >= 0)

    def rest(self) -> Iterator[Part]:
        """What stands behind the last line's end, once nothing follows."""
        if self._held and (self._stamp is not None or self._read_stamp(at_end=True)):
            yield self._cut(len(self._held), last=True)

    def _cut(self, length: int, *, last: bool) -> Part:
        part = Part(self._stamp or 0, self._held[:length], self._first, last)
        self._held = self._held[length:]
        self._first = last
        if last:
            self._stamp = None
        return part

    def _read_stamp(self, *, at_end: bool = False) -> bool:
        """Take the time off the front; False while it is not all here.

        A line without one is a word of the server's in between, and kept as it is.
        """
        head = self._held[: _MAX_STAMP + 1]
        space, end = head.find(b" "), head.find(b"\n")
        if space < 0 and end < 0 and len(head) <= _MAX_STAMP and not at_end:
            return False
        cut = space if space >= 0 and (end < 0 or space < end) else end
        text = head[:cut] if cut >= 0 else head
        stamp = unix_ns(text.decode("ascii", "replace"))
        self._stamp = stamp or 0
        if stamp is not None:
            # A line that is empty has a time and nothing else, not always with the space.
            self._held = self._held[cut + (1 if cut == space else 0) :] if cut >= 0 else b""
        return True
