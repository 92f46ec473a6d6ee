"""Keeps so many runs on their way: submits more as soon as some have ended."""

from __future__ import annotations

import asyncio
import time
from dataclasses import dataclass, field

from bench.checks import ended
from bench.load.documents import Bulk
from bench.load.http import Connection
from bench.platform.platform import Platform

_LOOK_S = 0.05


@dataclass(slots=True)
class Fed:
    """Moments (seconds) at which so many runs had been submitted and had ended."""

    submitted: int = 0
    marks: list[tuple[float, int]] = field(default_factory=list)

    @property
    def ended(self) -> int:
        """Runs that ended while it was measured."""
        return self.marks[-1][1] - self.marks[0][1]

    def rate(self, skip_s: float) -> float:
        """Ends a second, without the first `skip_s` seconds."""
        begin = next(mark for mark in self.marks if mark[0] >= self.marks[0][0] + skip_s)
        end = self.marks[-1]
        return (end[1] - begin[1]) / (end[0] - begin[0])


async def feed(
    platform: Platform, bulk: Bulk, *, for_s: float, on_the_way: int, lanes: int = 2
) -> Fed:
    """Submit for `for_s` seconds so that about `on_the_way` runs have not ended."""
    fed = Fed()
    before, over = await ended(platform), 0
    room = asyncio.Condition()
    until = time.monotonic() + for_s
    number = 0

    async def lane() -> None:
        nonlocal number
        connection = await Connection.open(platform.roles.port)
        while time.monotonic() < until:
            async with room:
                await room.wait_for(
                    lambda: (
                        fed.submitted - over + bulk.runs <= on_the_way or time.monotonic() >= until
                    )
                )
                fed.submitted += bulk.runs
                number += 1
                mine = number
            status, body = await connection.exchange(bulk(mine))
            if status >= 300:
                raise RuntimeError(f"{status} {body[:300]!r}")
        connection.close()

    async def look() -> None:
        nonlocal over
        while time.monotonic() < until:
            over = await ended(platform) - before
            fed.marks.append((time.monotonic(), over))
            async with room:
                room.notify_all()
            await asyncio.sleep(_LOOK_S)
        async with room:
            room.notify_all()

    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(look())
        for _ in range(lanes):
            tasks.create_task(lane())
    return fed
