"""Collects everything wrong with a document, each with its place and the way to mend it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from difflib import get_close_matches
from typing import NamedTuple

from verderer.core.errors import Invalid, Problem
from verderer.core.pipeline.limits import MAX_PROBLEMS

_MAX_SHOWN = 60
_MAX_CANDIDATES = 200


class Place(NamedTuple):
    """Where something stands in the text: 1-based line and column, and its span of characters."""

    line: int
    column: int
    start: int
    end: int


NOWHERE = Place(0, 0, 0, 0)


class Wrong(NamedTuple):
    """Why a value is not allowed, and what would be; where it stands is the caller's to know."""

    message: str
    hint: str = ""


class Problems:
    """The problems found so far in one text, and where each of its fields stands."""

    def __init__(self, source: str = "") -> None:
        self.source = source
        self.total = 0
        self._found: list[Problem] = []
        self._places: dict[str, Place] = {}

    def mark(self, field: str, place: Place) -> None:
        """Remember where `field` stands, so that later checks can point at it by name."""
        self._places[field] = place

    def knows(self, field: str) -> bool:
        """Whether `field` is in the text, readable or not."""
        return field in self._places

    def place_of(self, field: str) -> Place:
        """Where `field` stands, or the nearest field around it that is known."""
        while field not in self._places:
            cut = max(field.rfind("."), field.rfind("["))
            if cut <= 0:
                return self._places.get("", NOWHERE)
            field = field[:cut]
        return self._places[field]

    def add(
        self,
        message: str,
        *,
        field: str = "",
        hint: str = "",
        place: Place | None = None,
        needle: str = "",
    ) -> None:
        """Note one problem.

        `place` is looked up by `field` when it is not given. `needle` is the part of the field's
        text that is wrong; the problem then points at it and not at the start of the text.
        """
        self.total += 1
        if self.total > MAX_PROBLEMS:
            return
        at = self.place_of(field) if place is None else place
        line, column = self._point(at, needle)
        self._found.append(
            Problem(message=message, field=field, line=line, column=column, hint=hint)
        )

    def nearest(self, word: str, candidates: Iterable[str]) -> str:
        """The candidate that `word` was most likely meant to be; empty when none is close.

        Also empty once so many problems were found that nobody will read the hint.
        """
        return "" if self.total >= MAX_PROBLEMS else nearest(word, candidates)

    def raise_if_any(self, what: str) -> None:
        """Raise `Invalid` with every problem, in the order of the text, if there is one."""
        if not self.total:
            return
        found = sorted(self._found, key=lambda p: (p.line, p.column, p.field))
        number = "1 problem" if self.total == 1 else f"{self.total:,} problems"
        first = f"; these are the first {MAX_PROBLEMS}" if self.total > MAX_PROBLEMS else ""
        raise Invalid(f"{what} has {number}{first}", problems=found)

    def _point(self, at: Place, needle: str) -> tuple[int, int]:
        found = self.source.find(needle, at.start, at.end) if needle else -1
        if found < 0:
            return at.line, at.column
        line_start = self.source.rfind("\n", 0, found) + 1
        return at.line + self.source.count("\n", at.start, found), found - line_start + 1


def refuse(message: str, *, place: Place = NOWHERE, field: str = "", hint: str = "") -> Invalid:
    """The error for a document that cannot be read any further, for the caller to raise."""
    problem = Problem(message=message, field=field, line=place.line, column=place.column, hint=hint)
    return Invalid("the document cannot be read: " + message, problems=(problem,), hint=hint)


def nearest(word: str, candidates: Iterable[str]) -> str:
    """The candidate most like `word`, whatever its case; empty when none is close."""
    if len(word) > 2 * _MAX_SHOWN:
        return ""
    by_folded: dict[str, str] = {}
    for candidate in candidates:
        if abs(len(candidate) - len(word)) <= max(4, len(word) // 2):
            by_folded.setdefault(candidate.lower(), candidate)
            if len(by_folded) == _MAX_CANDIDATES:
                break
    close = get_close_matches(word.lower(), by_folded, n=1, cutoff=0.6)
    return by_folded[close[0]] if close else ""


def did_you_mean(word: str) -> str:
    """The hint for a nearest spelling; empty without one."""
    return f"did you mean `{word}`?" if word else ""


def shown(text: str) -> str:
    """A value as it is quoted in a message: on one line, and not longer than a line."""
    flat = text if text.isprintable() else ascii(text)[1:-1]
    return f"`{flat}`" if len(flat) <= _MAX_SHOWN else f"`{flat[: _MAX_SHOWN - 1]}…`"


def listed(names: Sequence[str]) -> str:
    """`a, b or c`."""
    if len(names) < 2:
        return "".join(names)
    return f"{', '.join(names[:-1])} or {names[-1]}"
