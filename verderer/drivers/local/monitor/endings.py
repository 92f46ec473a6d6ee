"""What ended an attempt, decided from what the monitor saw: values in, a document out."""

from __future__ import annotations

import errno
import os
import signal

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

# Values of `EndCause`, which costs too much to import here; a test compares them.
EXIT, SIGNAL, OOM, TIMEOUT = "exit", "signal", "oom", "timeout"
CANCELLED, LOST, START = "cancelled", "lost", "start"


def verdict(
    why: str, statuses: Sequence[int | None], failed: int | None, *, oom: bool, detail: str
) -> dict[str, Any]:
    """The end of an attempt.

    `why` is what the monitor set out to do (`CANCELLED`, `TIMEOUT`, `START`) or empty when the
    programs ended by themselves; `statuses` are wait statuses by rank; `failed` is the rank that
    failed first; `oom` says whether the memory limit killed something in that replica; `detail`
    is a sentence about `why`.
    """
    status = statuses[failed if failed is not None else 0]
    code, number = _outcome(status)
    end: dict[str, Any] = {"cause": why, "exit_code": code, "signal": number, "message": detail}
    if why == START:
        return {**end, "exit_code": None, "signal": None}
    if why:
        return end
    of = f"replica {failed} of {len(statuses)}: " if failed is not None and statuses[1:] else ""
    if failed is not None and oom:
        return {**end, "cause": OOM, "message": f"{of}its memory limit was reached"}
    if number is not None:
        return {**end, "cause": SIGNAL, "message": f"{of}killed by {signal_name(number)}"}
    told = f"{of}exit code {code}" if code else ""
    return {**end, "cause": EXIT, "message": told}


def signal_name(number: int) -> str:
    """`signal 9 (SIGKILL)`."""
    try:
        return f"signal {number} ({signal.Signals(number).name})"
    except ValueError:
        return f"signal {number}"


def start_failure(stage: str, number: int, program: str, *, exists: bool, path: str) -> str:
    """One sentence on why the program could not be started."""
    if stage == "directory":
        return f"the working directory cannot be entered: {os.strerror(number)}"
    if stage == "cgroup":
        return f"the resource limits could not be set: {os.strerror(number)}"
    if number == errno.ENOENT and exists:
        return f"{program} cannot run: the interpreter named in its first line does not exist"
    if number in (errno.ENOENT, errno.ENOTDIR):
        where = "" if "/" in program else f" (looked in {path or 'an empty PATH'})"
        return f"command not found: {program}{where}"
    if number == errno.EACCES:
        return f"permission denied: {program} is not an executable file"
    if number == errno.ENOEXEC:
        return f"{program} is neither a program for this machine nor a script with a #! line"
    if number == errno.E2BIG:
        return "the arguments and the environment together are too long"
    return f"{program} could not be started: {os.strerror(number)}"


def _outcome(status: int | None) -> tuple[int | None, int | None]:
    if status is None:
        return None, None
    if os.WIFSIGNALED(status):
        return None, os.WTERMSIG(status)
    return os.WEXITSTATUS(status), None
