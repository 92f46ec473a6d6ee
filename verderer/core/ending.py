"""How an attempt ended, in one English sentence; pages translate by `cause` instead."""

from __future__ import annotations

import re
import signal
from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from verderer.core.model.attempt import End, EndCause

_REPLICA: Final = re.compile(r"(?P<who>(?:replica|rank) \d+ of \d+): ")
_SIGNAL: Final = re.compile(r"killed by signal \d+(?: \(\w+\))?")
_EXIT: Final = re.compile(r"exit code \d+")
_SAID: Final = {
    EndCause.OOM: (
        "its memory limit was reached",
        "it reached its memory limit and was killed",
        "its memory was used up",
    ),
    EndCause.CANCELLED: ("stopped on request", "cancelled"),
}
PLAIN: Final[Mapping[EndCause, str]] = MappingProxyType(
    {
        EndCause.OOM: "ran out of its memory limit",
        EndCause.TIMEOUT: "ran longer than its timeout",
        EndCause.CANCELLED: "cancelled",
        EndCause.LOST: "lost: nobody saw how it ended",
        EndCause.START: "could not be started",
        EndCause.OUTPUT: "an output was missing or could not be stored",
    }
)
"""Those causes that come without a number."""
_SHELLS: Final = 128
_HIGHEST: Final = 64


def describe(end: End) -> str:
    """One sentence, with what the cluster adds to it."""
    text, more = _cause(end), beyond(end)
    if not more:
        return text
    return f"{text} {more}" if more.startswith("(") else f"{text}: {more}"


def beyond(end: End) -> str:
    """What the message says that the cause, exit code and signal have not said; may be empty."""
    message = end.message.strip()
    replica = _REPLICA.match(message)
    who = f"{replica['who']}" if replica else ""
    rest = message[replica.end() :] if replica else message
    if end.cause is EndCause.EXIT:
        rest = _EXIT.sub("", rest, count=1)
    elif end.cause is EndCause.SIGNAL:
        rest = _SIGNAL.sub("", rest, count=1)
    elif rest in _SAID.get(end.cause, ()):
        rest = ""
    rest = rest.strip().removeprefix(",").strip()
    return f"{who}: {rest}" if who and rest else who or rest


def signal_of_exit(code: int | None) -> int | None:
    """The signal that an exit code stands for when a shell tells what became of a program."""
    if code is None or not _SHELLS < code <= _SHELLS + _HIGHEST:
        return None
    return code - _SHELLS


def signal_name(number: int | None) -> str:
    """`9 (SIGKILL)`; the number alone when it has no name."""
    try:
        return f"{number} ({signal.Signals(number or 0).name})"
    except ValueError:
        return str(number)


def _cause(end: End) -> str:
    match end.cause:
        case EndCause.EXIT:
            by = signal_of_exit(end.exit_code)
            told = f" (as of signal {signal_name(by)})" if by is not None else ""
            return f"exited with code {end.exit_code}{told}"
        case EndCause.SIGNAL:
            return f"killed by signal {signal_name(end.signal)}"
        case plain:
            return PLAIN[plain]
