"""The small things that Slurm prints everywhere: numbers, states, times, amounts, host lists."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from typing import Any, Final

from verderer.core.errors import Fault

MIB: Final = 1 << 20
_NOTHING: Final = frozenset({"", "(null)", "N/A", "n/a", "n/s", "None", "NONE", "Unknown", "null"})
_NO_VALUE: Final = frozenset(
    value for bits in (16, 32, 64) for value in (2**bits - 1, 2**bits - 2)
) | {-1, -2}
"""Slurm's INFINITE and NO_VAL of each width, and the latter as a signed number."""
_UNITS: Final = {"K": 2**10, "M": 2**20, "G": 2**30, "T": 2**40, "P": 2**50}
_AMOUNT: Final = re.compile(r"([0-9]{1,18}(?:\.[0-9]{1,9})?)([KMGTP]?)[Bnc]?")
_KEY: Final = re.compile(r"(?:^|\s)([A-Za-z][\w/:.-]*)=")
_FLAG_OF_SIGN: Final = {
    "*": "NOT_RESPONDING",
    "~": "POWERED_DOWN",
    "#": "POWERING_UP",
    "%": "POWERING_DOWN",
    "!": "POWER_DOWN",
    "$": "MAINTENANCE",
    "@": "REBOOT_REQUESTED",
    "^": "REBOOT_ISSUED",
    "-": "PLANNED",
}


class Unreadable(Fault):
    """Slurm answered, and the answer is not what any known version says."""

    code = "unreadable"


def document(text: str) -> dict[str, Any]:
    """The JSON object in `text`.

    Raises:
        Unreadable: there is none, or Slurm says in it that it failed.
    """
    try:
        found = json.loads(text)
    except (ValueError, RecursionError) as problem:
        raise Unreadable(f"Slurm's JSON cannot be read: {problem}") from problem
    if not isinstance(found, dict):
        raise Unreadable("Slurm's JSON is not an object")
    if errors := [_error(one) for one in rows(found, "errors")]:
        raise Unreadable(f"Slurm answers with an error: {'; '.join(errors)}")
    return found


def rows(found: Mapping[str, Any], key: str) -> Iterator[dict[str, Any]]:
    """The objects of the list under `key`; what is no object is passed over."""
    listed = found.get(key)
    if isinstance(listed, list):
        yield from (one for one in listed if isinstance(one, dict))


def number(value: object) -> int | None:
    """A whole number, plain, as text or as `{set, infinite, number}`; None when it is not set."""
    if isinstance(value, dict):
        if value.get("set") is False or value.get("infinite") is True:
            return None
        value = value.get("number")
    if isinstance(value, bool):
        return None
    if isinstance(value, str):
        if not re.fullmatch(r"-?[0-9]{1,20}", value.strip()):
            return None
        value = int(value)
    if isinstance(value, float):
        value = int(value) if abs(value) < 2**63 else None
    return value if isinstance(value, int) and value not in _NO_VALUE else None


def amount(value: object) -> float | None:
    """A number that may have a fraction; None when it is not one."""
    try:
        found = float(str(value)) if isinstance(value, str | int | float) else None
    except (ValueError, OverflowError):
        return None
    return found if found is not None and 0 <= found < 2**31 else None


def text_of(value: object) -> str:
    """Text, with Slurm's words for nothing made empty."""
    found = value.strip() if isinstance(value, str) else ""
    return "" if found in _NOTHING else found


def words(value: object) -> tuple[str, ...]:
    """A list of names, or names with commas between them."""
    listed = value if isinstance(value, list) else text_of(value).split(",")
    return tuple(found for one in listed if (found := text_of(one)))


def states(*values: object) -> tuple[str, frozenset[str]]:
    """The base state and the flags, in upper case, of `idle`, `MIXED*+DRAIN`, `["IDLE", "DRAIN"]`.

    Several values are taken together: the first word is the base state.
    """
    found: list[str] = []
    for value in values:
        for listed in value if isinstance(value, list) else [value]:
            for word in text_of(listed).upper().split("+"):
                name = word.rstrip("".join(_FLAG_OF_SIGN))
                found += [name] if name else []
                found += [_FLAG_OF_SIGN[sign] for sign in word[len(name) :]]
    return (found[0], frozenset(found[1:])) if found else ("", frozenset())


def unix_s(value: object) -> int | None:
    """Seconds since 1970 of a number or of `2026-12-01T05:20:37`, read as UTC; None when unset."""
    seconds = number(value)
    if seconds is None and isinstance(value, str):
        try:
            when = datetime.fromisoformat(value.strip())
        except ValueError:
            return None
        seconds = int(when.replace(tzinfo=when.tzinfo or UTC).timestamp())
    return seconds if seconds is not None and seconds > 0 else None


def duration_s(value: object) -> int | None:
    """Seconds of `1-02:03:04`, `10:00`; None for `UNLIMITED` and whatever else has no length."""
    found = re.fullmatch(r"(?:([0-9]{1,6})-)?((?:[0-9]{1,6}:){0,2}[0-9]{1,6})", text_of(value))
    if found is None:
        return None
    parts = [int(part) for part in found[2].split(":")]
    if found[1] is not None or len(parts) == 3:
        hours, minutes, seconds = [*parts, 0, 0][:3]
    elif len(parts) == 2:
        hours, (minutes, seconds) = 0, (parts[0], parts[1])
    else:
        hours, minutes, seconds = 0, parts[0], 0
    return ((int(found[1] or 0) * 24 + hours) * 60 + minutes) * 60 + seconds


def size_bytes(value: object, *, unit: int = MIB) -> int | None:
    """Bytes of `62.50G`, `100M` or a bare number of `unit`; None when it is neither."""
    found = _AMOUNT.fullmatch(text_of(value))
    if found is None:
        return None
    return int(float(found[1]) * (_UNITS[found[2]] if found[2] else unit))


def fields(line: str) -> dict[str, str]:
    """`Key=value` pairs of one line of `scontrol -o`; a value may hold blanks. The first counts."""
    found: dict[str, str] = {}
    marks = list(_KEY.finditer(line))
    ends = [mark.start() for mark in marks[1:]] + [len(line)]
    for mark, end in zip(marks, ends, strict=False):
        found.setdefault(mark[1], line[mark.end() : end].strip())
    return found


def _error(one: Mapping[str, Any]) -> str:
    told = [text_of(one.get(key)) for key in ("description", "error", "source")]
    return ": ".join(part for part in told if part) or "no reason given"
