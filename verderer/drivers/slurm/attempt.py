"""One attempt as this agent knows it: its files, its job, and what follows from both."""

from __future__ import annotations

import asyncio
import contextlib
import os
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from verderer.core.model.attempt import AttemptKey, AttemptState, End, EndCause
from verderer.drivers.contract import Observed
from verderer.drivers.slurm import layout, pending
from verderer.drivers.slurm.readers.jobs import SlurmJob
from verderer.drivers.slurm.verdict import Evidence, RankExit, read_exit

_SAID_BYTES = 400


@dataclass(frozen=True, slots=True, kw_only=True)
class Files:
    """What an attempt's directory held at one moment."""

    there: bool = False
    order: Mapping[str, Any] | None = None
    job: Mapping[str, Any] | None = None
    claim: Mapping[str, Any] | None = None
    stop: Mapping[str, Any] | None = None
    end: Mapping[str, Any] | None = None
    running: Mapping[str, Any] | None = None
    exits: Mapping[int, RankExit] = field(default_factory=dict)
    beat: int = 0
    """Changes as long as a rank shows a sign of life."""
    said: str = ""


def look(home: Path) -> Files:
    """Read the directory. Runs in a thread: a file server may take its time."""
    try:
        names = {entry.name for entry in os.scandir(home)}
    except OSError:
        return Files()
    known = {
        name: layout.read(home, f"{name}.json")
        for name in ("order", "job", "claim", "stop", "end")
        if f"{name}.json" in names
    }
    return Files(
        there=True,
        running=layout.read(home, "running.0.json") if "running.0.json" in names else None,
        exits=_exits(home, names),
        beat=sum(_changed_ns(home / name) for name in names if name.startswith("alive.")),
        said=_said(home / layout.OUTPUT) if layout.OUTPUT in names else "",
        **known,
    )


class SlurmAttempt:
    """What is known of it, brought up to date by `take` and `judge`."""

    def __init__(self, key: AttemptKey, home: Path, *, clock: float) -> None:
        self.key = key
        self.home = home
        self.files = Files()
        self.job: SlurmJob | None = None
        self.job_id: int | None = None
        self.observed = Observed(key=key, state=AttemptState.STARTING)
        self.lock = asyncio.Lock()
        """Held while it is being submitted, stopped or forgotten."""
        self.asked = False
        """Slurm may have been asked to take it: its job is looked for before it is asked again."""
        self.sure_from = 0
        """Number of the first look at Slurm that must show the job."""
        self.signalled_at = float("-inf")
        """When Slurm was last asked to end it, in monotonic seconds."""
        self.stopped_at = clock
        """When it was told to end, or found here told to, in monotonic seconds."""
        self.submitted_at = clock
        """When it was last handed to Slurm, or found here, in monotonic seconds."""
        self.asked_more_at = float("-inf")
        """When Slurm was last asked for more than its list says, in monotonic seconds."""
        self.ended_at: float | None = None
        """When Slurm was first seen to have ended its job, in monotonic seconds."""
        self.beat_at = clock
        """When its sign of life was last seen to change, in monotonic seconds."""
        self._news = asyncio.Event()

    @property
    def over(self) -> bool:
        return self.observed.state.over

    @property
    def claimed(self) -> bool:
        """Whether a job has begun to run it."""
        return self.files.claim is not None and not self.barred

    @property
    def barred(self) -> bool:
        return self.files.claim is not None and self.files.claim.get("barred") is True

    @property
    def stopped(self) -> bool:
        return self.files.stop is not None

    @property
    def nodes(self) -> int:
        return _whole((self.files.order or {}).get("nodes"), 1)

    @property
    def unsubmitted(self) -> bool:
        """Whether its order stands and no job of it is known."""
        ready = self.files.order is not None and self.job_id is None
        return ready and not self.over and self.files.claim is None

    def take(self, files: Files, *, now: float) -> None:
        """Take in what its directory holds. `now` is monotonic seconds."""
        if files.beat != self.files.beat or files.running != self.files.running:
            self.beat_at = now
        self.files = files
        claim, job = files.claim or {}, files.job or {}
        number = _whole(claim.get("job"), 0) or _whole(job.get("id"), 0)
        self.job_id = number or self.job_id
        if files.end is not None and not self.over:
            self._over(files.end)

    def evidence(self, *, silent: bool) -> Evidence:
        """All that is known, for the verdict."""
        order, files = self.files.order or {}, self.files
        timeout = order.get("timeout_s")
        return Evidence(
            nodes=self.nodes,
            timeout_s=float(timeout) if isinstance(timeout, int | float) else None,
            grace_s=float(order.get("grace_s", 30.0)),
            barred=self.barred,
            claimed=self.claimed,
            claim_restart=_whole((files.claim or {}).get("restart"), 0),
            stopped=self.stopped,
            exits=files.exits,
            job=self.job,
            silent=silent,
            said=files.said,
        )

    def show(self) -> None:
        """Say what it does now, while it is not over."""
        job = self.job
        state = AttemptState.STARTING
        if self.files.running is not None:
            state = AttemptState.RUNNING
        if self.stopped and self.claimed:
            state = AttemptState.STOPPING
        if not self.files.there and job is not None and not job.waiting:
            state = AttemptState.RUNNING
        waits = job is not None and job.state in ("PENDING", "SUSPENDED")
        self._see(
            Observed(
                key=self.key,
                state=state,
                node=job.node if job is not None and not job.waiting else "",
                started_ms=self._started_ms(),
                pending=pending.waiting(job.reason) if job is not None and waits else None,
            )
        )

    def conclude(self, end: End) -> dict[str, Any]:
        """It is over; returns the document that says so for ever."""
        job = self.job
        ends = [one.ended_ms for one in self.files.exits.values()]
        by_slurm = job.ended_s * 1000 if job is not None and job.ended_s and job.over else None
        document = {
            "cause": end.cause.value,
            "exit_code": end.exit_code,
            "signal": end.signal,
            "message": end.message,
            "node": self.observed.node or (job.node if job is not None else ""),
            "started_ms": self._started_ms(),
            "ended_ms": max(ends, default=by_slurm or time.time_ns() // 1_000_000),
            "logs": {str(rank): one.log_bytes for rank, one in self.files.exits.items()},
        }
        self._over(document)
        return document

    def log_bytes(self, replica: int) -> int:
        """How much a replica wrote in all; 0 when nobody counted."""
        logs = (self.files.end or {}).get("logs") or {}
        counted = self.files.exits.get(replica)
        return counted.log_bytes if counted is not None else _whole(logs.get(str(replica)), 0)

    async def news(self, *, timeout_s: float) -> None:
        """Return when something about it changes, or on time-out."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(timeout_s):
                await self._news.wait()

    def tell(self) -> None:
        """Wake everybody who waits in `news`."""
        self._news.set()
        self._news = asyncio.Event()

    def _started_ms(self) -> int | None:
        started = (self.files.running or {}).get("started_ms")
        return started if isinstance(started, int) else None

    def _over(self, document: Mapping[str, Any]) -> None:
        try:
            cause = EndCause(document["cause"])
        except (KeyError, ValueError):
            cause = EndCause.LOST
        end = End(
            cause=cause,
            exit_code=document.get("exit_code"),
            signal=document.get("signal"),
            message=str(document.get("message", "")),
        )
        self._see(
            Observed(
                key=self.key,
                state=end.state,
                node=str(document.get("node", "")),
                end=end,
                started_ms=document.get("started_ms"),
                ended_ms=document.get("ended_ms"),
            )
        )

    def _see(self, observed: Observed) -> None:
        if observed != self.observed:
            self.observed = observed
            self.tell()


def _exits(home: Path, names: set[str]) -> dict[int, RankExit]:
    found = {}
    for name in names:
        rank = name.removeprefix("exit.").removesuffix(".json")
        if name == f"exit.{rank}.json" and rank.isdigit():
            document = layout.read(home, name)
            one = read_exit(int(rank), document) if document is not None else None
            if one is not None:
                found[one.rank] = one
    return found


def _said(path: Path) -> str:
    """The last lines of a file, as one."""
    try:
        with path.open("rb") as file:
            file.seek(max(0, os.fstat(file.fileno()).st_size - _SAID_BYTES))
            data = file.read(_SAID_BYTES)
    except OSError:
        return ""
    return " ".join(data.decode("utf-8", "replace").split())


def _changed_ns(path: Path) -> int:
    try:
        return path.stat().st_mtime_ns
    except OSError:
        return 0


def _whole(value: object, otherwise: int) -> int:
    if isinstance(value, str) and value.isdigit():
        return int(value)
    return value if isinstance(value, int) and not isinstance(value, bool) else otherwise
