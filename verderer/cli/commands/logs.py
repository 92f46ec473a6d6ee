"""`logs [-f] RUN[/STEP]`: what steps wrote."""

from __future__ import annotations

import codecs
import contextlib
import sys
from collections.abc import AsyncGenerator, AsyncIterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

import typer

from verderer.cli.commands import contexts
from verderer.cli.commands.remote import API, client_of, collect, patiently, run, the_run
from verderer.cli.commands.why import TargetArgument
from verderer.cli.screen.terminal import Tone, clean, clean_output, colours_on, paint, say

if TYPE_CHECKING:
    from verderer.wire.client import ApiClient
    from verderer.wire.runs import StepOut

_MOST_FOLLOWED = 50
_MOST_STEPS = 10_000
# A step may be silent for days.
_QUIET_S = 7 * 86_400.0
_TRIES = 30
_PREFIX_TONES = (Tone.BUSY, Tone.GOOD, Tone.UNSURE, Tone.PLAIN)


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """What of the output is wanted."""

    follow: bool = False
    tail: int | None = None
    search: str = ""
    timestamps: bool = False
    attempt: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """One replica of one step."""

    step: str
    replica: int
    prefix: str
    """Before each line; empty when there is only one part."""


def logs(
    target: TargetArgument,
    follow: Annotated[bool, typer.Option("--follow", "-f", help="Stay, and show more.")] = False,
    tail: Annotated[
        int | None,
        typer.Option("--tail", "-n", min=0, max=10_000, help="Only so many last lines."),
    ] = None,
    search: Annotated[str, typer.Option("--search", help="Only lines that hold this text.")] = "",
    timestamps: Annotated[
        bool, typer.Option("--timestamps", "-t", help="When each line was written, UTC.")
    ] = False,
    attempt: Annotated[
        int | None, typer.Option("--attempt", min=1, help="(default: the newest)")
    ] = None,
    replica: Annotated[
        int | None, typer.Option("--replica", min=0, help="Of a step on several nodes.")
    ] = None,
) -> None:
    """Show the output of a step, or of all steps of a run, each line behind its step's name.

    Lines that begin with [verderer] say where output is missing.
    """
    asked = Asked(follow=follow, tail=tail, search=search, timestamps=timestamps, attempt=attempt)
    run(_show(target, asked, replica))


async def _show(target: str, asked: Asked, replica: int | None) -> None:
    import asyncio

    name, _, step = target.partition("/")
    async with client_of(contexts.logged_in()) as client:
        async with patiently("Looking for the output"):
            run_id = await the_run(client, name)
            parts = await _parts(client, run_id, step, replica)
        if asked.follow and len(parts) > _MOST_FOLLOWED:
            from verderer.core.errors import Invalid

            raise Invalid(
                f"{len(parts)} outputs are too many to follow at once",
                hint=f"Name one: verderer logs -f {run_id}/STEP",
            )
        if not asked.follow:
            for part in parts:
                await _write(client, run_id, part, asked)
            return
        await asyncio.gather(*(_write(client, run_id, part, asked) for part in parts))


async def _parts(client: ApiClient, run_id: str, step: str, replica: int | None) -> list[Part]:
    from verderer.wire.runs import StepDetail, StepOut

    found: list[StepOut]
    if step:
        found = [await client.get(f"{API}/runs/{run_id}/steps/{step}", StepDetail)]
    else:
        found, _ = await collect(client, f"/runs/{run_id}/steps", StepOut, most=_MOST_STEPS)
    pairs = [
        (one.name, number)
        for one in found
        for number in (range(one.nodes) if replica is None else [replica])
    ]
    several = len(pairs) > 1
    longest = max((len(_label(found, *pair)) for pair in pairs), default=0)
    return [
        Part(
            step=name,
            replica=number,
            prefix=_label(found, name, number).ljust(longest) if several else "",
        )
        for name, number in pairs
    ]


def _label(found: list[StepOut], step: str, replica: int) -> str:
    nodes = next((one.nodes for one in found if one.name == step), 1)
    return clean(f"{step}/{replica}" if nodes > 1 else step)


async def _write(client: ApiClient, run_id: str, part: Part, asked: Asked) -> None:
    """Print one part to its end; a connection that breaks is opened again where it broke."""
    colours = colours_on(sys.stdout)
    tone = _PREFIX_TONES[sum(part.prefix.encode()) % len(_PREFIX_TONES)]
    prefix = f"{paint(part.prefix, tone)} | " if part.prefix else ""
    async with contextlib.aclosing(lines_of(client, run_id, part, asked)) as lines:
        async for line in lines:
            sys.stdout.write(f"{prefix}{clean_output(line, colours=colours)}\n")
            if asked.follow:
                sys.stdout.flush()
    sys.stdout.flush()


async def lines_of(
    client: ApiClient, run_id: str, part: Part, asked: Asked
) -> AsyncGenerator[str, None]:
    """Lines of a part's output; while it is followed an outage of the server is waited out.

    Raises: whatever `ApiClient` raises; after an outage of about a minute too.
    """
    import asyncio

    from verderer.core.errors import Fault

    query: dict[str, str | int | None] = {
        "attempt": asked.attempt,
        "replica": part.replica,
        "tail": asked.tail,
        "search": asked.search or None,
        "timestamps": "true" if asked.timestamps else None,
        "follow": "true" if asked.follow else None,
    }
    path = f"{API}/runs/{run_id}/steps/{part.step}/logs"
    given = failures = 0
    while True:
        seen = 0
        try:
            body = client.stream(path, accept="text/plain", quiet_s=_QUIET_S, query=query)
            async with contextlib.aclosing(body), contextlib.aclosing(_cut(body)) as lines:
                async for line in lines:
                    seen += 1
                    if seen > given:
                        given, failures = seen, 0
                        yield line
            return
        except Fault as e:
            failures += 1
            # What has a tail begins elsewhere the next time, so it cannot be gone on with.
            if not asked.follow or asked.tail is not None or failures > _TRIES:
                raise
            if failures == 1:
                say(f"The server is away ({clean(e.message)}); waiting for it …", Tone.UNSURE)
            await asyncio.sleep(min(2.0, 0.25 * failures))


async def _cut(body: AsyncIterator[bytes]) -> AsyncGenerator[str, None]:
    """Lines of a stream of bytes, without their ends."""
    decoder = codecs.getincrementaldecoder("utf-8")("replace")
    held = ""
    async for part in body:
        held += decoder.decode(part)
        *lines, held = held.split("\n")
        for line in lines:
            yield line
    if held:
        yield held
