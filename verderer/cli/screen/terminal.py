"""What may be written to a terminal, and how it looks there."""

from __future__ import annotations

import os
import re
import shutil
import sys
from enum import StrEnum
from typing import TextIO

# Sequences that a terminal acts upon: CSI, OSC and other strings, two-character escapes; 7 and 8
# bit forms.
_ESCAPE = re.compile(
    r"\x1b\[[0-?]*[ -/]*[@-~]?|\x9b[0-?]*[ -/]*[@-~]?"
    r"|(?:\x1b[\]PX^_]|[\x90\x98\x9d-\x9f])[^\x07\x1b\x9c]*(?:\x07|\x1b\\|\x9c)?"
    r"|\x1b[ -/]*[0-~]?"
)
_COLOUR = re.compile(r"\x1b\[[0-9;]*m")
# Controls, and marks that turn the direction of text around.
_UNPRINTABLE = re.compile(
    r"[\x00-\x08\x0a-\x1f\x7f-\x9f\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]"
)
NARROW = 80


class Tone(StrEnum):
    """What a colour means; the words beside it say the same."""

    PLAIN = ""
    DIM = "2"
    STRONG = "1"
    GOOD = "32"
    BAD = "31"
    BUSY = "36"
    UNSURE = "33"


_LOOKS: dict[str, tuple[str, str, Tone]] = {
    "waiting": ("○", "waiting", Tone.DIM),
    "queued": ("○", "queued", Tone.DIM),
    "assigned": ("◐", "starting", Tone.BUSY),
    "starting": ("◐", "starting", Tone.BUSY),
    "running": ("●", "running", Tone.BUSY),
    "stopping": ("◐", "stopping", Tone.UNSURE),
    "cancelling": ("◐", "cancelling", Tone.UNSURE),
    "succeeded": ("✓", "succeeded", Tone.GOOD),
    "failed": ("✕", "failed", Tone.BAD),
    "lost": ("✕", "lost", Tone.BAD),
    "cancelled": ("⊘", "cancelled", Tone.DIM),
    "skipped": ("⊘", "skipped", Tone.DIM),
    "unknown": ("?", "unknown", Tone.UNSURE),
    "online": ("●", "online", Tone.GOOD),
    "offline": ("?", "offline", Tone.UNSURE),
    "disabled": ("⊘", "disabled", Tone.DIM),
    "never": ("○", "never connected", Tone.DIM),
    "joining": ("○", "waits for its agent", Tone.DIM),
    "unfit": ("!", "not fit for work", Tone.BAD),
    "pass": ("✓", "pass", Tone.GOOD),
    "warn": ("!", "warn", Tone.UNSURE),
    "fail": ("✕", "fail", Tone.BAD),
    "ready": ("●", "ready", Tone.GOOD),
    "not ready": ("!", "not ready", Tone.UNSURE),
}


def look(state: str) -> tuple[str, Tone]:
    """A state's shape and word, and its colour: the same as in the console."""
    shape, word, tone = _LOOKS.get(state, ("?", clean(state), Tone.UNSURE))
    return f"{shape} {word}", tone


def clean(text: str) -> str:
    """Text from elsewhere on one line, with nothing in it that a terminal would act upon."""
    return _UNPRINTABLE.sub("\ufffd", _ESCAPE.sub("", text)).replace("\t", " ")


def clean_output(line: str, *, colours: bool) -> str:
    """A line that a program wrote: its colours may stay, whatever else steers a terminal goes."""
    if "\x1b" not in line and line.isprintable():
        return line
    if not colours:
        return _UNPRINTABLE.sub("", _ESCAPE.sub("", line))
    parts: list[str] = []
    at = 0
    for match in _COLOUR.finditer(line):
        parts += [_UNPRINTABLE.sub("", _ESCAPE.sub("", line[at : match.start()])), match[0]]
        at = match.end()
    parts.append(_UNPRINTABLE.sub("", _ESCAPE.sub("", line[at:])))
    # A program that was cut off must not colour what follows.
    return "".join(parts) + ("\x1b[0m" if len(parts) > 1 else "")


def colours_on(stream: TextIO) -> bool:
    """Whether `stream` shows colours: a terminal that nobody asked to be plain."""
    if os.environ.get("NO_COLOR"):
        return False
    if os.environ.get("FORCE_COLOR"):
        return True
    return stream.isatty() and os.environ.get("TERM") != "dumb"


def paint(text: str, tone: Tone, stream: TextIO | None = None) -> str:
    """The text in the tone's colour, where the stream (standard output) shows colours."""
    if tone is Tone.PLAIN or not text or not colours_on(stream or sys.stdout):
        return text
    return f"\x1b[{tone.value}m{text}\x1b[0m"


def width(stream: TextIO | None = None) -> int | None:
    """Columns of the terminal; None when it is none and nobody set COLUMNS: nothing is cut."""
    stream = stream or sys.stdout
    if given := os.environ.get("COLUMNS", ""):
        return int(given) if given.isdecimal() and int(given) > 0 else NARROW
    return shutil.get_terminal_size((NARROW, 24)).columns if stream.isatty() else None


def height() -> int:
    """Lines of the terminal."""
    return shutil.get_terminal_size((NARROW, 24)).lines


def say(text: str = "", tone: Tone = Tone.PLAIN) -> None:
    """Tell the person something that is not the result."""
    print(paint(text, tone, sys.stderr), file=sys.stderr, flush=True)
