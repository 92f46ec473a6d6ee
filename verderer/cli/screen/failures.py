"""What a failure looks like, and the exit code that scripts decide by."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from enum import IntEnum

from verderer.cli.screen.terminal import Tone, clean, paint
from verderer.core.errors import (
    Fault,
    Invalid,
    NotAuthenticated,
    NotFound,
    Problem,
    VerdererError,
)


class Exit(IntEnum):
    """Exit codes, the same for every command."""

    OK = 0  # done; a run that was waited for succeeded
    FAILED = 1  # the run did not succeed, or what was asked is refused
    USAGE = 2  # the command line itself is wrong
    NOT_AUTHENTICATED = 3  # nobody is logged in, or the token is not accepted
    NOT_FOUND = 4  # there is no such run, step, project, …
    UNAVAILABLE = 5  # the server does not answer
    INTERRUPTED = 130  # Ctrl-C


def exit_code_of(error: VerdererError) -> Exit:
    """The code that a command ends with because of `error`."""
    if isinstance(error, NotAuthenticated):
        return Exit.NOT_AUTHENTICATED
    if isinstance(error, NotFound):
        return Exit.NOT_FOUND
    return Exit.UNAVAILABLE if isinstance(error, Fault) else Exit.FAILED


def print_error(error: VerdererError) -> None:
    """The message, what is wrong with which field, and the remedy, on standard error."""
    _write(f"{paint('Error:', Tone.BAD, sys.stderr)} {clean(error.message)}")
    if isinstance(error, Invalid):
        for problem in error.problems:
            if clean(problem.message) != clean(error.message):
                _write(f"  {_in_words(problem)}")
    if error.hint:
        _write(f"{paint('Hint:', Tone.BUSY, sys.stderr)} {clean(error.hint)}")


def print_problems(name: str, text: str, problems: Sequence[Problem]) -> None:
    """What is wrong with a file, the way compilers say it: place, message, line and caret."""
    lines = text.splitlines()
    for problem in problems:
        place = f"{name}:{problem.line}:{problem.column}:" if problem.line else f"{name}:"
        hint = f" ({clean(problem.hint)})" if problem.hint else ""
        _write(f"{paint(place, Tone.STRONG, sys.stderr)} {clean(problem.message)}{hint}")
        if 0 < problem.line <= len(lines):
            _write_source(lines[problem.line - 1], problem.column)


def _write_source(line: str, column: int) -> None:
    """The line with a caret below the column, whatever its characters' widths are."""
    from rich.cells import cell_len

    at = max(0, min(column - 1, len(line)))
    start = max(0, at - 60)
    shown = clean(line[start : start + 100])
    _write(f"    {shown}")
    before = cell_len(clean(line[start:at]))
    _write("    " + " " * before + paint("^", Tone.BAD, sys.stderr))


def _in_words(problem: Problem) -> str:
    place = f" (line {problem.line}, column {problem.column})" if problem.line else ""
    field = f"{clean(problem.field)}: " if problem.field else ""
    hint = f"; {clean(problem.hint)}" if problem.hint else ""
    return f"{field}{clean(problem.message)}{hint}{place}"


def _write(line: str) -> None:
    print(line, file=sys.stderr)
