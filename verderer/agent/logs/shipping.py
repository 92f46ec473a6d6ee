"""Carries what attempts print to the object store while they print it.

Each replica's output becomes a row of chunks under `{log_prefix}{replica}/{sequence:08d}`. The
newest chunk grows: it is written again under its key within half a second of new output, so that
whoever follows sees it, and sealed at 1 MiB or after a minute. Where a chunk ends is recorded
before it is stored as sealed, so that after a crash the same bytes are cut at the same places and
every byte stands in exactly one chunk. What is not stored yet stays with the driver: when the store
is away nothing piles up here.

A replica that ends on a chunk already stored, or never wrote, is reported complete by a fact of
size 0 that names no object.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

import structlog

from verderer.agent.chores import Chores
from verderer.agent.files.transfers import Transfers
from verderer.agent.journal import Journal, Launched, LogPosition
from verderer.agent.logs.stream import Limits, LogStream, ReleasesLogs
from verderer.agent.logs.uploading import Uploader
from verderer.agent.reporter import Reporter
from verderer.core.model.attempt import AttemptKey
from verderer.drivers.contract import Driver

log = structlog.get_logger("verderer.agent")

DRAINERS: Final = 32
START_DELAY_S: Final = 0.2
"""A step that is over sooner is read by a drainer and never gets a task of its own."""


@dataclass(slots=True)
class _Followed:
    streams: list[LogStream]
    waiting: set[int]
    timer: asyncio.TimerHandle | None = None
    tasks: list[asyncio.Task[None]] = field(default_factory=list)
    started: bool = False


class Shipper:
    """Follows attempts until all they wrote is stored and acknowledged."""

    def __init__(
        self,
        driver: Driver,
        transfers: Transfers,
        journal: Journal,
        reporter: Reporter,
        chores: Chores,
        *,
        limits: Limits | None = None,
    ) -> None:
        self._driver = driver
        self._journal = journal
        self._reporter = reporter
        self._chores = chores
        self._limits = limits or Limits()
        self._uploader = Uploader(transfers, journal, reporter, self._limits, self._acknowledged)
        self._releases = driver if isinstance(driver, ReleasesLogs) else None
        self._followed: dict[AttemptKey, _Followed] = {}
        self._drain: asyncio.Queue[AttemptKey] = asyncio.Queue()

    def begin(self, on_shipped: Callable[[AttemptKey], None]) -> None:
        """Start the workers."""
        self._on_shipped = on_shipped
        self._uploader.begin(self._chores)
        for number in range(DRAINERS):
            self._chores.spawn(self._drain_work(), f"log drainer {number}")

    def follow(self, key: AttemptKey, terms: Launched, *, over: bool) -> None:
        """Ship what `key` prints; again and again is the same as once. `over`: it has ended."""
        followed = self._followed.get(key)
        if followed is None:
            followed = self._open(key, terms)
            if not followed.streams:
                self._finish(key)
                return
            if not over:
                loop = asyncio.get_running_loop()
                followed.timer = loop.call_later(START_DELAY_S, self._start, key)
        if over and not followed.started:
            followed.started = True
            if followed.timer is not None:
                followed.timer.cancel()
            self._drain.put_nowait(key)

    def abandon(self, key: AttemptKey) -> None:
        """The driver has lost the attempt: what it has not given yet will never come."""
        followed = self._followed.get(key)
        if followed is None:
            self._on_shipped(key)
            return
        for task in followed.tasks:
            task.cancel()
        for stream in followed.streams:
            stream.finish(cut_short=True)
            self._uploader.submit(stream)

    def _open(self, key: AttemptKey, terms: Launched) -> _Followed:
        memory = self._journal.live.get(str(key))
        streams = []
        for replica in range(terms.replicas if terms.log_prefix else 0):
            at = memory.position(replica) if memory is not None else LogPosition()
            if not at.complete:
                prefix = f"{terms.log_prefix}{replica}/"
                streams.append(LogStream(key, replica, prefix, at, self._uploader))
        followed = _Followed(streams, {stream.replica for stream in streams})
        self._followed[key] = followed
        return followed

    def _start(self, key: AttemptKey) -> None:
        followed = self._followed.get(key)
        if followed is None or followed.started:
            return
        followed.started = True
        for stream in followed.streams:
            name = f"log {key} {stream.replica}"
            followed.tasks.append(self._chores.spawn(stream.read(self._driver), name))

    async def _drain_work(self) -> None:
        while True:
            followed = self._followed.get(await self._drain.get())
            if followed is None:
                continue
            for stream in followed.streams:
                await stream.read(self._driver)
                # Not on to the next before this one is out of memory.
                await stream.sent()

    def _acknowledged(self, stream: LogStream, until: int, *, complete: bool) -> None:
        """A sealed chunk is stored and known; its bytes are not needed here any more."""
        if self._releases is not None:
            self._chores.spawn(self._release(self._releases, stream, until), "log release")
        followed = self._followed.get(stream.key)
        if complete and followed is not None:
            followed.waiting.discard(stream.replica)
            if not followed.waiting:
                self._finish(stream.key)

    async def _release(self, driver: ReleasesLogs, stream: LogStream, until: int) -> None:
        try:
            await driver.release_logs(stream.key, replica=stream.replica, upto=until)
        except Exception as error:  # noqa: BLE001 - costs room on the disk, never the log
            log.warning("releasing logs failed", attempt=str(stream.key), reason=str(error))

    def _finish(self, key: AttemptKey) -> None:
        del self._followed[key]
        self._on_shipped(key)
