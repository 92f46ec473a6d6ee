"""Which time stands at which byte: so that a log can be taken up again where its reader stopped.

The API takes up a log at a second, not at a byte. A mark says how many bytes stood before and
how many lines of the very same nanosecond are among them. Marks at what is safe elsewhere are
kept in a file too, when there is a folder for it, and outlive the agent.
"""

from __future__ import annotations

import contextlib
from collections import deque
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

import msgspec

_KEPT: Final = 128
_EVERY_BYTES: Final = 16 * 1024


@dataclass(frozen=True, slots=True)
class Mark:
    """The end of a line."""

    offset: int = 0
    """Bytes up to there."""
    stamp_ns: int = 0
    """Of that line; 0 at the very beginning."""
    lines: int = 0
    """With this very stamp, up to there."""


START: Final = Mark()


class Marks:
    """Of one replica's output."""

    def __init__(self, path: Path | None = None) -> None:
        self._path = path
        self._marks: deque[Mark] = deque(maxlen=_KEPT)
        saved = _load(path)
        if saved is not None:
            self._marks.append(saved)

    def note(self, mark: Mark) -> None:
        """Remember the end of a line; not of each, but of enough of them."""
        newest = self._marks[-1] if self._marks else START
        if mark.offset >= newest.offset + _EVERY_BYTES or not self._marks:
            self._marks.append(mark)

    def before(self, offset: int) -> Mark:
        """The nearest known end of a line at or before `offset`."""
        found = [mark for mark in self._marks if mark.offset <= offset]
        return max(found, key=lambda mark: mark.offset, default=START)

    def release(self, upto: int) -> None:
        """What stands before `upto` is safe elsewhere: write the nearest mark down."""
        mark = self.before(upto)
        if self._path is None or not mark.stamp_ns:
            return
        # The worst that a missing file costs is reading from the beginning again.
        with contextlib.suppress(OSError):
            self._path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            new = self._path.with_suffix(".new")
            new.write_bytes(msgspec.json.encode(mark))
            new.replace(self._path)

    def drop(self) -> None:
        """Nothing of it will be read any more."""
        if self._path is not None:
            with contextlib.suppress(OSError):
                self._path.unlink(missing_ok=True)


def after_line(before: Mark, offset: int, stamp_ns: int) -> Mark:
    """The mark behind a line that ends at `offset`."""
    if stamp_ns == before.stamp_ns:
        return replace(before, offset=offset, lines=before.lines + 1)
    return Mark(offset, stamp_ns, 1)


def _load(path: Path | None) -> Mark | None:
    if path is None:
        return None
    try:
        return msgspec.json.decode(path.read_bytes(), type=Mark)
    except (OSError, msgspec.DecodeError):
        return None
