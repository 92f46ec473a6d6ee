"""Starts roles in stages, keeps them alive, and stops them in the opposite order."""

from __future__ import annotations

import asyncio
import contextlib
import signal
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from enum import Enum

import structlog

from verderer.cli.up.backoff import Backoff
from verderer.cli.up.child import Child
from verderer.cli.up.role import REFUSED, Exits, RoleSpec
from verderer.cli.up.stream import LogStream, last_words
from verderer.core.errors import Fault

log = structlog.get_logger()


@dataclass(frozen=True, slots=True, kw_only=True)
class Patience:
    """When to give a start up. Once everything has been ready, nothing is ever given up."""

    ready_within_s: float = 300.0
    """For one role: a database may have a long log to replay."""
    attempts: int = 5
    """Short lives of a role before its start has failed."""


class _Stage(Enum):
    STARTING = "starting"
    RUNNING = "running"
    STOPPING = "stopping"


@dataclass(slots=True)
class _Post:
    """A role's place, whoever fills it at the moment."""

    spec: RoleSpec
    backoff: Backoff = field(default_factory=Backoff)
    child: Child | None = None
    task: asyncio.Task[None] | None = None
    go: asyncio.Event = field(default_factory=asyncio.Event)
    """Set once its stage is reached."""
    ready: asyncio.Event = field(default_factory=asyncio.Event)
    starting: asyncio.Lock = field(default_factory=asyncio.Lock)
    """Held while a process is being made, so that stopping never misses one."""


class Supervisor:
    """`await run()` lives as long as the platform; `stop()` ends it.

    `stages` are started one after the other; the roles of one stage together, each stage once
    all of the one before are ready. `on_ready` is called once, when all of them are.
    """

    def __init__(
        self,
        stages: Sequence[Sequence[RoleSpec]],
        stream: LogStream,
        *,
        on_ready: Callable[[], None] = lambda: None,
        patience: Patience = Patience(),
        backoff: Callable[[], Backoff] = Backoff,
    ) -> None:
        self._stages = [[_Post(spec, backoff()) for spec in stage] for stage in stages]
        self._stream = stream
        self._on_ready = on_ready
        self._patience = patience
        self._stage = _Stage.STARTING
        self._stopping = asyncio.Event()
        self._failed = asyncio.Event()
        self._fault: Fault | None = None

    def stop(self) -> None:
        """Ask for a clean stop; a second call kills what still runs. For a signal handler."""
        if self._stopping.is_set():
            for post in self._posts():
                if post.child is not None:
                    post.child.signal_group(signal.SIGKILL)
        self._stopping.set()

    async def run(self) -> None:
        """Start, keep alive until `stop`, stop.

        Raises:
            Fault: a role did not become ready at the first start; the others are stopped.
        """
        starting = asyncio.create_task(self._start())
        ending = [asyncio.create_task(event.wait()) for event in (self._stopping, self._failed)]
        try:
            await asyncio.wait([starting, *ending], return_when=asyncio.FIRST_COMPLETED)
            if not any(task.done() for task in ending):
                self._stage = _Stage.RUNNING
                self._on_ready()
                await self._stopping.wait()
        finally:
            self._stage = _Stage.STOPPING
            for task in (starting, *ending):
                task.cancel()
            await self._stop_all()
        if self._fault is not None:
            raise self._fault

    def _posts(self) -> list[_Post]:
        return [post for stage in self._stages for post in stage]

    async def _start(self) -> None:
        for post in self._posts():
            if post.spec.early:
                post.task = asyncio.create_task(self._keep(post))
        for stage in self._stages:
            for post in stage:
                post.go.set()
                post.task = post.task or asyncio.create_task(self._keep(post))
            await asyncio.gather(*(post.ready.wait() for post in stage))

    async def _keep(self, post: _Post) -> None:
        """Fill the post again and again; end only for a role that is done or given up."""
        while child := await self._hire(post):
            await child.ends_or(post.go)
            child.go()
            ready = await self._becomes_ready(child)
            if ready:
                log.debug("ready", of=post.spec.name, after_s=round(child.age_s, 2))
                post.ready.set()
            code = await child.ended()
            if self._stage is _Stage.STOPPING or (ready and isinstance(post.spec.ready, Exits)):
                return
            wait_s = post.backoff.after(child.age_s)
            if self._gives_up(post, child, code):
                return
            log.warning(
                "ended",
                of=post.spec.name,
                how=_how(code),
                lived_s=round(child.age_s, 1),
                again_in_s=wait_s,
            )
            await asyncio.sleep(wait_s)

    async def _hire(self, post: _Post) -> Child | None:
        """A new process for the post, or None if everything is to stop."""
        while True:
            async with post.starting:
                if self._stage is _Stage.STOPPING:
                    return None
                try:
                    post.child = await Child.start(post.spec, self._stream)
                except OSError as e:  # no memory, no process slots, no such program
                    wait_s = post.backoff.after(0.0)
                    log.warning("no process", of=post.spec.name, error=str(e), again_in_s=wait_s)
                else:
                    return post.child
            if self._stage is _Stage.STARTING and self._too_often(post):
                self._fail(f"{post.spec.name} does not start: it cannot be executed")
                return None
            await asyncio.sleep(wait_s)

    async def _becomes_ready(self, child: Child) -> bool:
        try:
            async with asyncio.timeout(self._patience.ready_within_s):
                return await child.becomes_ready()
        except TimeoutError:
            log.warning("not ready in time", of=child.spec.name, pid=child.pid)
            await child.stop()
            return False

    def _gives_up(self, post: _Post, child: Child, code: int) -> bool:
        if self._stage is not _Stage.STARTING:
            return False
        if code != REFUSED and not self._too_often(post):
            return False
        self._fail(f"{post.spec.name} does not start ({_how(code)}): {last_words(child.tail)}")
        return True

    def _too_often(self, post: _Post) -> bool:
        return post.backoff.failures >= self._patience.attempts

    def _fail(self, message: str) -> None:
        self._fault = self._fault or Fault(message)
        self._failed.set()

    async def _stop_all(self) -> None:
        for stage in reversed(self._stages):
            await asyncio.gather(*(self._stop(post) for post in stage))

    async def _stop(self, post: _Post) -> None:
        async with post.starting:
            child = post.child
        if child is not None and child.code is None and not await child.stop():
            log.warning("did not end in time and was killed", of=post.spec.name)
        if post.task is not None:
            post.task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await post.task


def _how(code: int) -> str:
    return f"signal {-code}" if code < 0 else f"exit code {code}"
