"""A log as plain text: lines as the program wrote them, and marked lines where some are missing."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime

from verderer.objects.log_lines import LogGap, LogItem, LogLine

MARK = "[verderer]"
"""Begins every line that the program did not write."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """Which lines are shown and how."""

    search: str = ""
    """Only lines that hold this text, in whatever case; gaps are always shown."""
    timestamps: bool = False


class TextWriter:
    """Turns items into text; joins what was cut from one long line."""

    def __init__(self, wanted: Wanted) -> None:
        self._wanted = wanted
        self._needle = wanted.search.casefold()
        self._open = False  # the last line shown goes on

    def write(self, items: Iterable[LogItem]) -> str:
        """The text of `items`, which follow those that were given before."""
        return "".join(self._one(item) for item in items)

    def note(self, words: str) -> str:
        """A marked line of our own."""
        return f"{self._closed()}{MARK} {words}\n"

    def shows(self, item: LogItem) -> bool:
        """Whether the item is among what is wanted."""
        return isinstance(item, LogGap) or self._needle in item.text.casefold()

    def _one(self, item: LogItem) -> str:
        if isinstance(item, LogGap):
            return self.note(gap_words(item))
        if self._needle and self._needle not in item.text.casefold():
            return ""
        start = "" if self._open or not self._wanted.timestamps else f"{_time(item)} "
        # With a search the pieces of a long line are lines: those between may not be shown.
        self._open = item.truncated and not self._needle
        return f"{start}{item.text}" + ("" if self._open else "\n")

    def _closed(self) -> str:
        was, self._open = self._open, False
        return "\n" if was else ""


def last_items(items: Iterable[LogItem], writer: TextWriter, lines: int) -> list[LogItem]:
    """The last `lines` lines that are wanted, with the gaps among them."""
    kept: deque[LogItem] = deque()
    count = 0
    for item in items:
        if not writer.shows(item):
            continue
        kept.append(item)
        count += isinstance(item, LogLine)
        while count > lines:
            count -= isinstance(kept.popleft(), LogLine)
    return list(kept)


def gap_words(gap: LogGap) -> str:
    """What is missing, in one sentence."""
    size = f"{gap.lost:,} bytes" if gap.lost else "an unknown number of bytes"
    return f"{size} of output are missing here: {gap.reason or 'nobody knows why'}"


def _time(line: LogLine) -> str:
    if not line.unix_ms:
        return "-".ljust(24)
    at = datetime.fromtimestamp(line.unix_ms / 1000, UTC)
    return at.isoformat(timespec="milliseconds").replace("+00:00", "Z")
