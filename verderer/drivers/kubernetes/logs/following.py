"""Reads one replica's output until its container has ended and all of it is read."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Final

from verderer.core.errors import Invalid, NotFound
from verderer.core.model.attempt import AttemptKey
from verderer.drivers.contract import LogPiece
from verderer.drivers.kubernetes import naming
from verderer.drivers.kubernetes.calls.api import Api
from verderer.drivers.kubernetes.calls.errors import Silence
from verderer.drivers.kubernetes.deciding.ending import program_over, rank, started_ms
from verderer.drivers.kubernetes.logs.marks import Marks
from verderer.drivers.kubernetes.logs.position import Position
from verderer.drivers.kubernetes.roster import Tracked
from verderer.drivers.kubernetes.seen.clocks import rfc3339
from verderer.drivers.kubernetes.seen.sights import Pod

SILENCE_S: Final = 60.0
"""A running container that says nothing for so long is asked again: followed logs may freeze."""
_LOOK_S: Final = 1.0
_NEWS_S: Final = 30.0
REMOVED: Final = "its pod was removed before all of its output was read"


class Logs:
    """The output of every attempt; remembers where readers were."""

    def __init__(self, api: Api, folder: Path | None) -> None:
        """`folder` is where places in logs outlive the agent; None: they do not."""
        self._api = api
        self._folder = folder
        self._marks: dict[tuple[AttemptKey, int], Marks] = {}

    def release(self, key: AttemptKey, replica: int, upto: int) -> None:
        """Output before `upto` is safe elsewhere."""
        self._of(key, replica).release(upto)

    def drop(self, key: AttemptKey, replicas: int) -> None:
        """Nothing of the attempt will be read any more."""
        for replica in range(replicas):
            self._of(key, replica).drop()
            del self._marks[key, replica]

    async def follow(self, tracked: Tracked, replica: int, after: int) -> AsyncIterator[LogPiece]:
        """Output from byte `after` on, to its end.

        Raises:
            Fault: the cluster does not give it now.
        """
        at = Position(self._of(tracked.key, replica), after)
        clean = False
        while True:
            pod = await self._pod(tracked, replica)
            if pod is None:
                return
            over = _ended(pod)
            try:
                async for piece in self._answer(at, tracked, pod, follow=not over):
                    yield piece
                clean = True
            except NotFound:
                if not clean:
                    yield at.lost(REMOVED)
                return
            except Invalid:
                # Not begun yet, as far as the node knows.
                await tracked.wait(_LOOK_S)
                continue
            if over:
                for piece in at.rest():
                    yield piece
                return
            if not _ended(_newest(tracked, pod)):
                await tracked.wait(_LOOK_S)

    async def _answer(
        self, at: Position, tracked: Tracked, pod: Pod, *, follow: bool
    ) -> AsyncIterator[LogPiece]:
        params = {"container": naming.CONTAINER, "timestamps": "true"}
        if follow:
            params["follow"] = "true"
        if at.since:
            params["sinceTime"] = rfc3339(int(at.since) * 1000)
        meta = pod.metadata
        path = f"{naming.core_path(meta.namespace, 'pods')}/{meta.name}/log"
        at.answer()
        async with self._api.stream(path, params, silence_s=SILENCE_S) as stream:
            async for data in _while_running(stream, tracked, pod, follow=follow):
                for piece in at.feed(data):
                    yield piece

    async def _pod(self, tracked: Tracked, replica: int) -> Pod | None:
        """The replica's pod once it has begun; None when it never will."""
        while True:
            for pod in tracked.own_pods():
                if rank(pod) == replica and started_ms(pod) is not None:
                    return pod
            if tracked.intention is None or tracked.intention.end is not None:
                return None
            await tracked.wait(_NEWS_S)

    def _of(self, key: AttemptKey, replica: int) -> Marks:
        found = self._marks.get((key, replica))
        if found is None:
            path = self._folder / f"{key}-{replica}" if self._folder is not None else None
            found = self._marks[key, replica] = Marks(path)
        return found


async def _while_running(
    stream: AsyncIterator[bytes], tracked: Tracked, pod: Pod, *, follow: bool
) -> AsyncIterator[bytes]:
    """The stream, let go of when it goes on after its container has ended."""
    waiting: asyncio.Task[bytes] | None = None
    try:
        while True:
            if waiting is None:
                waiting = asyncio.ensure_future(_next(stream))
            done, _ = await asyncio.wait((waiting,), timeout=_LOOK_S if follow else None)
            if not done:
                if _ended(_newest(tracked, pod)):
                    return
                continue
            data = _result(waiting)
            waiting = None
            if not data:
                return
            yield data
    finally:
        if waiting is not None:
            waiting.cancel()
            await asyncio.gather(waiting, return_exceptions=True)


def _result(done: asyncio.Task[bytes]) -> bytes:
    """The next bytes; none at the end, or when a followed log has been silent for too long."""
    try:
        return done.result()
    except Silence:
        return b""


async def _next(stream: AsyncIterator[bytes]) -> bytes:
    while True:
        try:
            data = await anext(stream)
        except StopAsyncIteration:
            return b""
        if data:
            return data


def _newest(tracked: Tracked, pod: Pod) -> Pod:
    return tracked.pods.get(pod.metadata.uid, pod)


def _ended(pod: Pod) -> bool:
    return pod.status.phase in ("Succeeded", "Failed") or program_over(pod) is not None
