"""What a run does right now: a table that is drawn again on a terminal, lines elsewhere."""

from __future__ import annotations

import asyncio
import contextlib
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING, TextIO

from verderer.cli.commands.events import events
from verderer.cli.commands.remote import API
from verderer.cli.screen.tables import Cell, Column, cut, table
from verderer.cli.screen.terminal import Tone, clean, height, look, paint, width
from verderer.cli.screen.words import counted, lasted, span

if TYPE_CHECKING:
    from verderer.wire.client import ApiClient
    from verderer.wire.runs import RunOut, StepChange, WhyOut

_ASK_WHY_S = 2.0
_DRAW_S = 0.5
_FIRST = ("failed", "lost", "unknown", "running", "stopping", "starting", "waiting")
"""Steps that are shown first when there is not room for all."""
_OVER = frozenset({"succeeded", "failed", "cancelled"})


@dataclass(slots=True, kw_only=True)
class Picture:
    """What is known of the run."""

    run: RunOut | None = None
    steps: dict[int, StepChange] = field(default_factory=dict)
    why: dict[int, str] = field(default_factory=dict)
    """Why a step waits, by index."""
    away: str = ""
    """Not empty: the server does not answer, and this is why."""

    def order(self, room: int) -> tuple[list[StepChange], int]:
        """The steps that are shown in at most `room` lines, and how many are not."""
        steps = sorted(self.steps.values(), key=lambda s: s.index)
        if len(steps) <= room:
            return steps, 0
        rank = {state: place for place, state in enumerate(_FIRST)}
        chosen = sorted(steps, key=lambda s: (rank.get(s.state, len(rank)), s.index))
        kept = sorted(chosen[: max(1, room - 1)], key=lambda s: s.index)
        return kept, len(steps) - len(kept)


async def watch(client: ApiClient, run: str, stream: TextIO) -> RunOut:
    """Show the run on `stream` until it is over and return it.

    Raises: as `events.events`.
    """
    picture = Picture()
    screen: _Lines | _Screen = _Screen(stream) if stream.isatty() else _Lines(stream)
    helpers = [
        asyncio.create_task(_ask_why(client, run, picture)),
        asyncio.create_task(_draw(screen, picture)),
    ]
    try:
        async with contextlib.aclosing(events(client, run)) as heard:
            async for name, data in heard:
                _take(picture, name, data)
                if name != "end":
                    screen.show(picture)
    finally:
        for helper in helpers:
            helper.cancel()
        await asyncio.gather(*helpers, return_exceptions=True)
        screen.close(picture)
    if picture.run is None:
        from verderer.core.errors import Fault

        raise Fault("the server said nothing about the run")
    return picture.run


def _take(picture: Picture, name: str, data: bytes) -> None:
    import msgspec

    from verderer.wire.runs import RunOut, StepChange

    if name == "run":
        picture.run = msgspec.json.decode(data, type=RunOut)
    elif name == "steps":
        for step in msgspec.json.decode(data, type=list[StepChange]):
            picture.steps[step.index] = step
            if step.state not in ("waiting", "unknown"):
                picture.why.pop(step.index, None)
    elif name == "away":
        picture.away = data.decode("utf-8", "replace")
    elif name == "back":
        picture.away = ""


async def _ask_why(client: ApiClient, run: str, picture: Picture) -> None:
    """Why steps wait is no event: it is asked for while some do."""
    from verderer.core.errors import VerdererError
    from verderer.wire.runs import WhyOut
    from verderer.wire.users import Listing

    while True:
        await asyncio.sleep(_ASK_WHY_S)
        if not any(s.state in ("waiting", "unknown") for s in picture.steps.values()):
            continue
        with contextlib.suppress(VerdererError):  # the next look will do
            page = await client.get(f"{API}/runs/{run}/why", Listing[WhyOut], limit=200)
            picture.why = {one.index: _short(one) for one in page.items if one.reasons}


def _short(one: WhyOut) -> str:
    reason = one.reasons[0]
    where = f"{reason.cluster}: " if reason.cluster else ""
    return f"{where}{reason.message or reason.code}"


async def _draw(screen: _Lines | _Screen, picture: Picture) -> None:
    """Times go on between events."""
    while True:
        await asyncio.sleep(_DRAW_S)
        screen.show(picture)


class _Screen:
    """Draws over what it drew before."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._drawn = 0

    def show(self, picture: Picture) -> None:
        """Draw the picture as it is now."""
        lines = draw(picture, columns=width(self._stream) or 80, lines=height() - 1)
        up = f"\x1b[{self._drawn}A" if self._drawn else ""
        body = "".join(f"{line}\x1b[K\n" for line in lines)
        self._stream.write(f"\x1b[?25l{up}\r{body}\x1b[J")
        self._stream.flush()
        self._drawn = len(lines)

    def close(self, picture: Picture) -> None:
        """Leave the last picture, whole, and the cursor."""
        if picture.run is not None:
            self.show(picture)
        self._stream.write("\x1b[?25h")
        self._stream.flush()


class _Lines:
    """One line for each change, for files and CI."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._seen: dict[int, tuple[str, int]] = {}
        self._told: dict[int, str] = {}
        self._away = ""

    def show(self, picture: Picture) -> None:
        """Print what has changed."""
        if picture.away != self._away:
            self._away = picture.away
            self._print(f"the server is away: {self._away}" if self._away else "the server is back")
        for step in picture.steps.values():
            now = (step.state, step.attempt)
            if self._seen.get(step.index) != now:
                self._seen[step.index] = now
                self._print(_told(step))
        for index, why in picture.why.items():
            # Numbers change all the time; the reason behind them is told once.
            if self._told.get(index) is None and not why.startswith("waits for "):
                self._told[index] = why
                self._print(f"{picture.steps[index].name} waits: {why}")

    def close(self, picture: Picture) -> None:
        """Print what was not yet."""
        self.show(picture)

    def _print(self, text: str) -> None:
        print(f"{datetime.now(UTC):%H:%M:%S} {clean(text)}", file=self._stream, flush=True)


def _told(step: StepChange) -> str:
    word, _ = look(step.state)
    where = f" on {step.cluster}" if step.cluster and step.state in ("starting", "running") else ""
    attempt = f" (attempt {step.attempt})" if step.attempt > 1 else ""
    took = ""
    if step.ended_at and step.started_at:
        took = f" after {lasted(step.started_at, step.ended_at)}"
    note = f": {step.note}" if step.note else ""
    return f"{step.name} {word}{where}{attempt}{took}{note}"


def draw(picture: Picture, *, columns: int, lines: int, now: datetime | None = None) -> list[str]:
    """The picture in at most `lines` lines of `columns` characters."""
    now = now or datetime.now(UTC)
    shown, left = picture.order(max(1, lines - 4))
    head = _head(picture, columns, now)
    if not picture.steps:
        return [head]
    body = table(_COLUMNS, [_row(picture, step, now) for step in shown], fit=columns)
    if left:
        hidden = Counter(s.state for i, s in picture.steps.items()) - Counter(
            s.state for s in shown
        )
        rest = ", ".join(f"{n} {state}" for state, n in hidden.most_common())
        body.append(paint(cut(f"… and {counted(left, 'step')} more: {rest}", columns), Tone.DIM))
    if picture.away:
        body.append(
            paint(cut(f"! the server is away: {clean(picture.away)}", columns), Tone.UNSURE)
        )
    return [head, *body]


_COLUMNS = (
    Column(title="STEP", shrinks=True, least=16),
    Column(title="STATE"),
    Column(title="TOOK", rank=1, right=True),
    Column(title="WHERE, OR WHY NOT", rank=2, shrinks=True, least=24),
)


def _row(picture: Picture, step: StepChange, now: datetime) -> list[Cell | str]:
    why = picture.why.get(step.index, "")
    attempt = f"attempt {step.attempt}" if step.attempt > 1 else ""
    said = why or ", ".join(part for part in (step.cluster, attempt, step.note) if part)
    return [
        step.name,
        Cell(*look(step.state)),
        lasted(step.started_at, step.ended_at, now),
        Cell(said, Tone.DIM),
    ]


def _head(picture: Picture, columns: int, now: datetime) -> str:
    run = picture.run
    if run is None:
        return paint("…", Tone.DIM)
    word, tone = look(run.state)
    done = run.steps - run.open
    took = span(((run.ended_at or now) - run.created_at).total_seconds())
    text = f"{word}  {clean(run.name)}  {run.id}  {done}/{run.steps} steps  {took}"
    return paint(cut(text, columns), tone)


def summary(run: RunOut) -> str:
    """How it ended, in one line."""
    word, tone = look(run.state)
    took = lasted(run.created_at, run.ended_at)
    failed = f", {counted(run.failed, 'step')} failed" if run.failed else ""
    return paint(f"{word}", tone) + f"  {clean(run.name)} {run.id} in {took}{failed}"


def unlucky(steps: Iterable[StepChange]) -> list[StepChange]:
    """Steps whose output is worth a look: those that failed or were lost."""
    return [step for step in steps if step.state in ("failed", "lost")]
