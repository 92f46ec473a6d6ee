"""GET /runs/{run}/watch: what changes in a run, as server-sent events.

The stream compares what there is now with what it said last, so that a reader that is slow, or a
wakeup that was lost, costs detail in between and never the truth.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import msgspec
from litestar import Request, get
from litestar.response import Stream

from verderer.api.auth import ActorArg, ContextArg
from verderer.api.runs.documents import show_change, show_run
from verderer.api.runs.found import READ, RunArg, the_run
from verderer.core.errors import Fault, NotAllowed, NotAuthenticated
from verderer.core.model.actor import Actor
from verderer.store.views.run_parts import BriefStep, brief_steps
from verderer.store.views.runs import RunRow, get_run
from verderer.usecases.context import Context

_PART = 500
"""Steps of one event."""
_ALIVE_S = 15.0
"""Without news: also the longest that a silent cluster is not noticed."""
_AT_MOST_EVERY_S = 0.25
_LARGE = 1_000
_ENCODE = msgspec.json.Encoder().encode


@dataclass(slots=True, kw_only=True)
class _Seen:
    """What the reader was told last."""

    run: RunRow | None = None
    steps: dict[int, BriefStep] = field(default_factory=dict)


@get("/runs/{run:str}/watch", opt=READ, tags=["runs"], summary="Watch a run")
async def watch(
    request: Request[Any, Any, Any], context: ContextArg, actor: ActorArg, run: RunArg
) -> Stream:
    """Server-sent events: `run` with the run, `steps` with those that changed (at first all),
    `end` when the run is over.

    A lost connection is opened again and told everything anew.
    """
    async with context.db.reading() as tx:
        found = await the_run(tx, actor, run)
    return Stream(
        _news(context, request.scope["state"]["recheck"], found.id),
        media_type="text/event-stream",
        headers={"X-Accel-Buffering": "no", "Cache-Control": "no-store"},
    )


async def _news(
    context: Context, recheck: Callable[[], Awaitable[Actor]], run: int
) -> AsyncIterator[bytes]:
    seen = _Seen()
    yield b"retry: 2000\n\n"
    with context.wakeups.listening(f"run:{run}") as news:
        while True:
            news.clear()
            try:
                actor = await recheck()
                row, steps = await _read(context, actor, run)
            except (NotAuthenticated, NotAllowed):
                return
            except Fault as e:
                await asyncio.sleep(e.retry_after_s)
                continue
            if row is None:
                return
            for event in _changes(seen, row, steps):
                yield event
            if row.state.over:
                yield _event("end", {"state": row.state.value})
                return
            await asyncio.sleep(_AT_MOST_EVERY_S * (1 if len(steps) < _LARGE else 8))
            if not await _wait(news):
                yield b": still here\n\n"


async def _read(
    context: Context, actor: Actor, run: int
) -> tuple[RunRow | None, Sequence[BriefStep]]:
    async with context.db.reading() as tx:
        # The steps first: a run that is read as over has no step that changes behind it.
        steps = await brief_steps(tx, actor.scope, run)
        row = await get_run(tx, actor.scope, run)
        if row is not None and row.state.over:
            steps = await brief_steps(tx, actor.scope, run)
    return row, steps


def _changes(seen: _Seen, row: RunRow, steps: Sequence[BriefStep]) -> list[bytes]:
    events = []
    changed = [step for step in steps if seen.steps.get(step.idx) != step]
    for start in range(0, len(changed), _PART):
        part = changed[start : start + _PART]
        events.append(_event("steps", [show_change(step) for step in part]))
    if row != seen.run:
        events.append(_event("run", show_run(row)))
    seen.run = row
    seen.steps.update({step.idx: step for step in changed})
    return events


def _event(name: str, data: Mapping[str, Any] | Sequence[Any] | msgspec.Struct) -> bytes:
    return b"event: " + name.encode() + b"\ndata: " + _ENCODE(data) + b"\n\n"


async def _wait(news: asyncio.Event) -> bool:
    """Whether there was news before it was time to say that we are still here."""
    try:
        async with asyncio.timeout(_ALIVE_S):
            await news.wait()
    except TimeoutError:
        return False
    return True


ROUTES = (watch,)
