"""Names of hosts as Slurm writes them: `gpu[01-04,7],login1`."""

from __future__ import annotations

import re
from typing import Final

from verderer.drivers.slurm.readers.values import Unreadable, text_of

MOST: Final = 100_000
"""More hosts than any cluster has: a longer list is a mistake, not a cluster."""
_RANGE: Final = re.compile(r"([0-9]{1,9})(?:-([0-9]{1,9}))?")


def expand(text: str) -> tuple[str, ...]:
    """Every host that the list names, in its order.

    Raises:
        Unreadable: brackets that do not match, a range that is none, or more than `MOST` hosts.
    """
    names: list[str] = []
    for part in _parts(text_of(text)):
        names += _expand(part, MOST - len(names))
    return tuple(names)


def first(text: str) -> str:
    """The first host of the list, or empty when there is none or it cannot be read."""
    try:
        return next(iter(expand(text)), "")
    except Unreadable:
        return ""


def _parts(text: str) -> list[str]:
    """Split at the commas that are outside brackets."""
    parts, depth, start = [], 0, 0
    for at, char in enumerate(text):
        depth += (char == "[") - (char == "]")
        if depth not in (0, 1):
            raise Unreadable(f"the brackets of {text[:80]!r} do not match")
        if char == "," and not depth:
            parts.append(text[start:at])
            start = at + 1
    if depth:
        raise Unreadable(f"the brackets of {text[:80]!r} do not match")
    return [part for part in [*parts, text[start:]] if part]


def _expand(part: str, room: int) -> list[str]:
    names = [""]
    for fixed, ranges in re.findall(r"([^\[\]]*)(?:\[([^\[\]]*)\])?", part):
        values = _values(ranges, room) if ranges else [""]
        if len(names) * len(values) > room:
            raise Unreadable(f"{part[:80]!r} names more than {MOST} hosts")
        names = [name + fixed + value for name in names for value in values]
    return names


def _values(ranges: str, room: int) -> list[str]:
    values: list[str] = []
    for one in ranges.split(","):
        found = _RANGE.fullmatch(one)
        low = int(found[1]) if found else 1
        high = int(found[2] or found[1]) if found else 0
        if found is None or high < low:
            raise Unreadable(f"{one[:80]!r} is no range of hosts")
        if high - low >= room - len(values):
            raise Unreadable(f"{one[:80]!r} names more than {MOST} hosts")
        values += [f"{n:0{len(found[1])}d}" for n in range(low, high + 1)]
    return values
