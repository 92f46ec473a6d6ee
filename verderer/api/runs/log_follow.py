"""Follows a growing log until nothing can follow: a look after every wakeup, and now and then."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass

from verderer.api.runs.log_text import TextWriter, Wanted
from verderer.api.runs.output import Output, read_output
from verderer.core.errors import Fault, NotAllowed, NotAuthenticated, NotFound
from verderer.core.model.actor import Actor
from verderer.objects.log_chunks import ChunkSource
from verderer.objects.log_reading import Follower, tail
from verderer.store.views.run_parts import RunHead, run_head
from verderer.store.views.steps import StepRow, get_step
from verderer.usecases.context import Context

_LOOK_AGAIN_S = 5.0
"""A lost wakeup costs this much; the credential is looked at as often."""
_LATE_S = 3.0
"""How long output of which nobody knows whether it comes is waited for when the attempt is over."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Following:
    """One reader's wish."""

    context: Context
    recheck: Callable[[], Awaitable[Actor]]
    """The actor as it stands now; raises once the credential opens nothing any more."""
    source: ChunkSource
    run: RunHead
    step: StepRow
    number: int | None
    """None: the newest attempt, and those that follow it."""
    replica: int
    tail: int | None
    wanted: Wanted


async def follow(asked: Following, first: Output) -> AsyncIterator[str]:
    """The text as it comes, until the log is complete and the attempt is over.

    A reader that is slow is waited for: nothing is read ahead of it. When the credential ends so
    does the text, with a marked line.
    """
    writer = TextWriter(asked.wanted)
    topics = (f"log:{asked.run.id}:{asked.step.idx}", f"run:{asked.run.id}")
    output, lines = first, asked.tail
    with asked.context.wakeups.listening(*topics) as news:
        while True:
            if output.attempt is not None:
                async for text in _one_attempt(asked, writer, output, news, lines):
                    yield text
            following = await _next_attempt(asked, output, news)
            if following is None or following.attempt is None:
                return
            if output.attempt is not None:
                yield writer.note(f"attempt {following.attempt.number}")
            output, lines = following, None


async def _one_attempt(
    asked: Following, writer: TextWriter, output: Output, news: asyncio.Event, lines: int | None
) -> AsyncIterator[str]:
    number = output.attempt.number if output.attempt else None
    follower = Follower(asked.source, start=await _start(asked.source, output, lines))
    patience = _Patience()
    sequence = 0
    while True:
        news.clear()
        fresh = await _look(asked, number, sequence)
        if fresh is None:
            yield writer.note("you may not read this any more")
            return
        ended = fresh.over and (fresh.complete or (not fresh.awaited and patience.over()))
        try:
            async for items in follower.advance(fresh.infos, ended=ended):
                if text := writer.write(items):
                    yield text
        except Fault as e:  # the store is away; nothing is lost by asking again
            await asyncio.sleep(e.retry_after_s)
            continue
        if ended:
            if note := fresh.end_note:
                yield writer.note(note)
            return
        done = [info.seq for info in fresh.infos if info.first_byte <= follower.offset]
        sequence = max(done, default=sequence)
        await _wait(news, _LATE_S / 6 if fresh.over else _LOOK_AGAIN_S)


class _Patience:
    """How long the end of the output is waited for, from the first time that it is asked."""

    def __init__(self) -> None:
        self._until: float | None = None

    def over(self) -> bool:
        now = asyncio.get_running_loop().time()
        if self._until is None:
            self._until = now + _LATE_S
        return now >= self._until


async def _start(source: ChunkSource, output: Output, lines: int | None) -> int:
    """The byte to begin at, so that the last `lines` lines come first."""
    if lines is None:
        return 0
    if lines == 0:
        return max((info.end for info in output.infos), default=0)
    last = await tail(source, output.infos, lines)
    return last[0].offset if last else 0


async def _next_attempt(asked: Following, output: Output, news: asyncio.Event) -> Output | None:
    """The output of the attempt behind that of `output`; None when there will be none."""
    if asked.number is not None:
        return None
    known = output.attempt.number if output.attempt else 0
    while True:
        news.clear()
        fresh = await _look(asked, None, 0)
        if fresh is None:
            return None
        if fresh.attempt is not None and fresh.attempt.number > known:
            return fresh
        if fresh.step.state.over:
            return None
        await _wait(news, _LOOK_AGAIN_S)


async def _look(asked: Following, number: int | None, sequence: int) -> Output | None:
    """What there is now; None when the reader may not see it any more.

    An outage of the database is waited out.
    """
    while True:
        try:
            actor = await asked.recheck()
            async with asked.context.db.reading() as tx:
                head = await run_head(tx, actor.scope, asked.run.id)
                step = await get_step(tx, actor.scope, asked.run.id, asked.step.idx)
                if head is None or step is None:
                    return None
                return await read_output(
                    tx,
                    actor,
                    head,
                    step,
                    number=number,
                    replica=asked.replica,
                    from_sequence=sequence,
                )
        except (NotAuthenticated, NotAllowed, NotFound):
            return None
        except Fault as e:
            await asyncio.sleep(e.retry_after_s)


async def _wait(news: asyncio.Event, seconds: float) -> None:
    try:
        async with asyncio.timeout(seconds):
            await news.wait()
    except TimeoutError:
        pass
