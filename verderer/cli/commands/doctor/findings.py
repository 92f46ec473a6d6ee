"""What a look at one thing found."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

import msgspec

from verderer.cli.screen.terminal import Tone


class Verdict(StrEnum):
    """How one thing stands."""

    OK = "ok"
    WARN = "warn"  # works, and will hurt some day
    FAIL = "fail"


TONES = {Verdict.OK: Tone.GOOD, Verdict.WARN: Tone.UNSURE, Verdict.FAIL: Tone.BAD}
SHAPES = {Verdict.OK: "✓", Verdict.WARN: "!", Verdict.FAIL: "✕"}


@dataclass(frozen=True, slots=True)
class Finding:
    """One line of the report."""

    verdict: Verdict
    what: str
    detail: str
    remedy: str = ""
    """What to do about it; empty when there is nothing to do."""


class FindingOut(msgspec.Struct, frozen=True):
    """The same for programs."""

    verdict: str
    what: str
    detail: str
    remedy: str


def ok(what: str, detail: str) -> Finding:
    """It is right."""
    return Finding(Verdict.OK, what, detail)


def warn(what: str, detail: str, remedy: str) -> Finding:
    """It works, and will hurt some day."""
    return Finding(Verdict.WARN, what, detail, remedy)


def fail(what: str, detail: str, remedy: str) -> Finding:
    """It does not work."""
    return Finding(Verdict.FAIL, what, detail, remedy)
