"""How an attempt ended, decided from what our program wrote and what Slurm's record says.

Each alone can be wrong: files are missing when a node dies or a disk is full, and Slurm knows
neither whose time limit passed nor who asked for the end. Nothing is over before both allow it.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from verderer.core.model.attempt import End, EndCause
from verderer.drivers.slurm.readers.jobs import SlurmJob

_LONGEST: Final = 2_000
NOT_OURS: Final = 75
"""Exit code of a job that may not run the attempt; our program on the nodes says it."""
NEAR_LIMIT_S: Final = 90.0
"""Slurm warns up to a minute earlier than it was asked to."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RankExit:
    """What our program wrote about the end of one rank."""

    rank: int
    why: str
    """`told`, `timeout`, `start`, or empty when the program ended by itself."""
    status: int
    """A wait status."""
    message: str
    ended_ms: int
    told_ms: int | None
    log_bytes: int

    @property
    def exit_code(self) -> int | None:
        return os.WEXITSTATUS(self.status) if os.WIFEXITED(self.status) else None

    @property
    def signal(self) -> int | None:
        return os.WTERMSIG(self.status) if os.WIFSIGNALED(self.status) else None

    @property
    def good(self) -> bool:
        return not self.why and self.status == 0


def read_exit(rank: int, found: Mapping[str, Any]) -> RankExit | None:
    """From the document `exit.RANK.json`; None when it is none."""
    numbers = [found.get(name) for name in ("status", "ended_ms", "log_bytes")]
    if not all(isinstance(one, int) for one in numbers):
        return None
    told = found.get("told_ms")
    return RankExit(
        rank=rank,
        why=str(found.get("why", "")),
        status=int(found["status"]) & 0xFFFF,
        message=str(found.get("message", ""))[:_LONGEST],
        ended_ms=int(found["ended_ms"]),
        told_ms=told if isinstance(told, int) else None,
        log_bytes=int(found["log_bytes"]),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """All that is known of one attempt at one moment."""

    nodes: int = 1
    timeout_s: float | None = None
    grace_s: float = 30.0
    barred: bool = False
    """We have claimed it ourselves: it never began and never will."""
    claimed: bool = False
    """A job has begun to run it."""
    claim_restart: int = 0
    """How often that job had been requeued when it did."""
    stopped: bool = False
    """We were asked to end it."""
    exits: Mapping[int, RankExit] = field(default_factory=dict)
    job: SlurmJob | None = None
    """Slurm's record; None when Slurm says that it knows no such job."""
    silent: bool = False
    """Slurm knows no such job, and for long there has been no sign of life from it either."""
    said: str = ""
    """The last of what Slurm and the batch script wrote."""


def verdict(seen: Evidence) -> End | None:
    """The end, or None while it is not over or nobody can know."""
    complete = len(seen.exits) >= seen.nodes
    job = seen.job
    if seen.barred and (seen.stopped or job is None or not job.over):
        told = "stopped before it was started" if seen.stopped else "Slurm lost it before it began"
        cause = EndCause.CANCELLED if seen.stopped else EndCause.LOST
        return End(cause=cause, message=told)
    if job is None:
        if complete or seen.silent:
            return _of_program(seen, "") or _unseen(seen)
        return None
    if job.completing and complete and all(one.good for one in seen.exits.values()):
        return End(cause=EndCause.EXIT, exit_code=0)
    if not job.over:
        return _requeued(seen, job)
    return _requeued(seen, job) or _of_program(seen, job.state) or _of_record(seen, job)


def _requeued(seen: Evidence, job: SlurmJob) -> End | None:
    """A job that was put back into the queue does not run the attempt again."""
    again = seen.claimed and job.restarts is not None and job.restarts > seen.claim_restart
    if again and seen.stopped:
        return End(cause=EndCause.CANCELLED)
    if again:
        message = "somebody put the job back into Slurm's queue, which ended the program"
        return End(cause=EndCause.LOST, message=message)
    return None


def _of_program(seen: Evidence, state: str) -> End | None:
    """What the ranks' own documents say, with Slurm's word on who killed them."""
    bad = sorted(
        (one for one in seen.exits.values() if not one.good),
        key=lambda one: (one.why == "told", one.ended_ms, one.rank),
    )
    if not bad:
        done = len(seen.exits) >= seen.nodes
        return End(cause=EndCause.EXIT, exit_code=0) if done else None
    first = bad[0]
    of = f"rank {first.rank} of {seen.nodes}: " if seen.nodes > 1 else ""
    if first.why == "start":
        return _end(EndCause.START, of + first.message)
    if first.why == "timeout":
        message = f"it ran longer than its timeout of {seen.timeout_s:g} s"
        return _end(EndCause.TIMEOUT, message, first)
    if first.why == "told":
        return _told(seen, state, first)
    if state == "OUT_OF_MEMORY":
        return _end(EndCause.OOM, f"{of}its memory limit was reached", first)
    if first.signal is not None:
        if (by := _by_slurm(seen, state)) is not None:
            return _end(by.cause, by.message, first)
        return _end(EndCause.SIGNAL, f"{of}killed by {signal_name(first.signal)}", first)
    return _end(EndCause.EXIT, f"{of}exit code {first.exit_code}", first)


def _told(seen: Evidence, state: str, first: RankExit) -> End:
    """It was asked to end, by a signal: say by whom."""
    if seen.stopped:
        return _end(EndCause.CANCELLED, "", first)
    if (by := _by_slurm(seen, state)) is not None:
        return _end(by.cause, by.message, first)
    if _near_limit(seen, first):
        return _end(EndCause.TIMEOUT, _slurms_limit(seen), first)
    message = "somebody outside the platform asked it to end (SIGTERM)"
    return End(cause=EndCause.SIGNAL, signal=first.signal or signal.SIGTERM, message=message)


def _near_limit(seen: Evidence, first: RankExit) -> bool:
    job = seen.job
    if job is None or job.started_s is None or job.limit_s is None or first.told_ms is None:
        return False
    limit_s = job.started_s + job.limit_s
    return limit_s - first.told_ms / 1000 <= seen.grace_s + NEAR_LIMIT_S


def _by_slurm(seen: Evidence, state: str) -> End | None:
    """The end that Slurm made itself, whatever the program did about it."""
    match state:
        case "CANCELLED":
            who = seen.job.cancelled_by if seen.job is not None else ""
            by = f"user {who}" if who else "somebody"
            told = "" if seen.stopped else f"{by} cancelled the job in Slurm"
            return End(cause=EndCause.CANCELLED, message=told)
        case "TIMEOUT":
            return End(cause=EndCause.TIMEOUT, message=_slurms_limit(seen))
        case "DEADLINE":
            return End(cause=EndCause.TIMEOUT, message="the job's deadline in Slurm passed")
        case "PREEMPTED":
            return End(cause=EndCause.LOST, message="Slurm gave its place to another job")
        case "NODE_FAIL":
            node = seen.job.node if seen.job is not None else ""
            return End(cause=EndCause.LOST, message=f"a node failed: {node}".rstrip(": "))
        case "REVOKED":
            return End(cause=EndCause.LOST, message="another cluster of the federation took it")
        case _:
            return None


def _of_record(seen: Evidence, job: SlurmJob) -> End | None:
    """Without documents of our program: what Slurm's record says."""
    if seen.stopped and job.exit_code != NOT_OURS:
        return End(cause=EndCause.CANCELLED)
    if (by := _by_slurm(seen, job.state)) is not None:
        return by
    if job.state == "BOOT_FAIL":
        return _end(EndCause.START, "the node that Slurm gave it did not come up")
    if job.state == "OUT_OF_MEMORY":
        return End(cause=EndCause.OOM, signal=signal.SIGKILL, message="its memory was used up")
    if seen.claimed and job.exit_code == NOT_OURS:
        # Slurm has run the job anew, which did nothing: the first one may well be alive.
        return _unseen(seen) if seen.silent else None
    if not seen.claimed:
        told = f"Slurm could not start it ({job.reason or job.state})"
        return _end(EndCause.START, f"{told}: {seen.said}" if seen.said else told)
    if job.signal is not None:
        return End(
            cause=EndCause.SIGNAL,
            signal=job.signal,
            message=f"killed by {signal_name(job.signal)}, as Slurm says",
        )
    if job.exit_code is not None and (job.exit_code or job.state == "COMPLETED"):
        told = f"exit code {job.exit_code}, as Slurm says" if job.exit_code else ""
        return End(cause=EndCause.EXIT, exit_code=job.exit_code, message=told)
    return _unseen(seen)


def _unseen(seen: Evidence) -> End:
    if seen.stopped:
        return End(cause=EndCause.CANCELLED)
    state = f"Slurm says {seen.job.state}" if seen.job is not None else "Slurm forgot the job"
    told = f"{state}, and its program left no word"
    return _end(EndCause.LOST, f"{told}: {seen.said}" if seen.said else told)


def _slurms_limit(seen: Evidence) -> str:
    limit_s = seen.job.limit_s if seen.job is not None else None
    return f"Slurm's time limit of {limit_s} s passed" if limit_s else "Slurm's time limit passed"


def _end(cause: EndCause, message: str, of: RankExit | None = None) -> End:
    if of is None or cause is EndCause.START:
        return End(cause=cause, message=message[:_LONGEST])
    return End(cause=cause, exit_code=of.exit_code, signal=of.signal, message=message[:_LONGEST])


def signal_name(number: int) -> str:
    """`signal 9 (SIGKILL)`."""
    try:
        return f"signal {number} ({signal.Signals(number).name})"
    except ValueError:
        return f"signal {number}"
