"""One life of one process: started, watched until ready, stopped."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import time
from collections import deque

from verderer.cli.up.readiness import answers, until
from verderer.cli.up.role import GO_VARIABLE, READY_VARIABLE, Alive, Answers, Exits, RoleSpec, Says
from verderer.cli.up.stream import LogStream
from verderer.store.embedded.lifeline import die_with_parent

_LAST_WORDS = 20
_DRAIN_S = 1.0


class Child:
    """A running process. Made by `Child.start`, on the supervisor's main thread.

    If the supervisor is killed, the kernel kills the child with it (Linux): a half-supervised
    platform would stand in the way of the next start. The database's launcher passes that on to
    its server as a clean shutdown.
    """

    def __init__(
        self, spec: RoleSpec, process: asyncio.subprocess.Process, log: LogStream, said: int
    ) -> None:
        self.spec = spec
        self.born = time.monotonic()
        self.tail: deque[str] = deque(maxlen=_LAST_WORDS)
        self._process = process
        self._said = said
        assert process.stdout is not None  # noqa: S101 asked for below
        self._logging = asyncio.create_task(log.follow(spec.name, process.stdout, self.tail))

    @classmethod
    async def start(cls, spec: RoleSpec, log: LogStream) -> Child:
        """Start the process in a group of its own: a terminal's Ctrl-C reaches only us."""
        said, say = os.pipe()
        waits = {GO_VARIABLE: "1"} if spec.early else {}
        try:
            process = await asyncio.create_subprocess_exec(
                *spec.argv,
                env={**spec.environment, READY_VARIABLE: str(say), **waits},
                stdin=asyncio.subprocess.PIPE if spec.early else asyncio.subprocess.DEVNULL,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.STDOUT,
                pass_fds=(say,),
                start_new_session=True,
                preexec_fn=die_with_parent(signal.SIGKILL),
            )
        except BaseException:
            os.close(said)
            raise
        finally:
            os.close(say)
        return cls(spec, process, log, said)

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def code(self) -> int | None:
        """Exit code, negative for a signal; None while it lives."""
        return self._process.returncode

    @property
    def age_s(self) -> float:
        return time.monotonic() - self.born

    def go(self) -> None:
        """Let an early process begin."""
        if self._process.stdin is not None:
            self._process.stdin.write(b"go\n")
            self._process.stdin.close()

    async def ends_or(self, event: asyncio.Event) -> None:
        """Wait until it has ended or `event` is set."""
        waiting = [asyncio.create_task(w) for w in (self._process.wait(), event.wait())]
        await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
        for task in waiting:
            task.cancel()
        await asyncio.gather(*waiting, return_exceptions=True)

    async def ended(self) -> int:
        """Wait for the end and for the last of its output; the exit code."""
        code = await self._process.wait()
        # A grandchild may hold the pipe open: its output is not worth waiting for.
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(asyncio.shield(self._logging), _DRAIN_S)
        self._logging.cancel()
        self._close_said()
        return code

    async def becomes_ready(self) -> bool:
        """Wait until it is ready (True) or has ended before that (False)."""
        ending = asyncio.create_task(self._process.wait())
        waiting = asyncio.create_task(self._ready())
        try:
            await asyncio.wait({ending, waiting}, return_when=asyncio.FIRST_COMPLETED)
            if isinstance(self.spec.ready, Exits):
                return await ending == 0
            return waiting.done() and not waiting.cancelled() and not ending.done()
        finally:
            ending.cancel()
            waiting.cancel()
            await asyncio.gather(ending, waiting, return_exceptions=True)

    async def _ready(self) -> None:
        match self.spec.ready:
            case Exits():
                await self._process.wait()
            case Alive(for_s):
                await asyncio.sleep(for_s)
            case Says():
                await self._hear()
            case Answers(url):
                await until(lambda: answers(url))

    async def _hear(self) -> None:
        loop = asyncio.get_running_loop()
        heard = asyncio.Event()
        loop.add_reader(self._said, heard.set)
        try:
            await heard.wait()
        finally:
            loop.remove_reader(self._said)
        if not os.read(self._said, 64):  # closed without a word: it is about to end
            await self._process.wait()

    def _close_said(self) -> None:
        if self._said >= 0:
            os.close(self._said)
            self._said = -1

    def signal_group(self, sign: signal.Signals) -> None:
        """Send `sign` to the process and what it started in its group; harmless once it ended."""
        if self.code is None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self.pid, sign)

    async def stop(self) -> bool:
        """Ask it to end, then make it; whether it ended by itself."""
        if self.code is None:
            with contextlib.suppress(ProcessLookupError):
                self._process.send_signal(signal.SIGTERM)
        try:
            async with asyncio.timeout(self.spec.stop_within_s):
                await self._process.wait()
        except TimeoutError:
            self.signal_group(signal.SIGKILL)
            await self.ended()
            return False
        await self.ended()
        return True
