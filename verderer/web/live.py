"""News for open pages: one event stream each, that says when to look again, not what is new.

A page that hears `changed` fetches its live part once. So what a page shows is always what a fresh
one would show, and a stream that was cut loses nothing.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import ExitStack

from litestar.response import Stream

from verderer.web.parts import Parts
from verderer.web.render import HEADERS

_AT_MOST_EVERY_S = 0.4
_LOOK_AGAIN_S = 10.0
"""Without any news too: a cluster that falls silent wakes nobody."""


def stream(parts: Parts, **topics: Sequence[str]) -> Stream:
    """Answer with an event of each name whenever one of its topics is woken."""
    return Stream(
        _news(parts, topics),
        media_type="text/event-stream",
        headers=HEADERS | {"X-Accel-Buffering": "no"},
    )


async def _news(parts: Parts, topics: dict[str, Sequence[str]]) -> AsyncIterator[bytes]:
    with ExitStack() as stack:
        heard = {
            name: stack.enter_context(parts.ctx.wakeups.listening(*of))
            for name, of in topics.items()
        }
        yield b"retry: 2000\nevent: hello\ndata: 1\n\n"
        while True:
            for name in await _next(heard):
                yield f"event: {name}\ndata: 1\n\n".encode()
            await asyncio.sleep(_AT_MOST_EVERY_S)


async def _next(heard: dict[str, asyncio.Event]) -> list[str]:
    """Names of the events that were set; all of them when it was quiet for long."""
    waits = [asyncio.ensure_future(event.wait()) for event in heard.values()]
    try:
        done, _ = await asyncio.wait(
            waits, timeout=_LOOK_AGAIN_S, return_when=asyncio.FIRST_COMPLETED
        )
    finally:
        for wait in waits:
            wait.cancel()
    if not done:
        return list(heard)
    names = [name for name, event in heard.items() if event.is_set()]
    for event in heard.values():
        event.clear()
    return names
