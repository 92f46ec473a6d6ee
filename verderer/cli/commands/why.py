"""`why RUN[/STEP]`: why steps wait, cluster by cluster, and what would start them."""

from __future__ import annotations

import textwrap
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated

import typer

from verderer.cli.commands.remote import API, ask, collect, the_run
from verderer.cli.screen.printing import Format, OutputOption, print_document
from verderer.cli.screen.terminal import Tone, clean, look, paint, say, width
from verderer.cli.screen.words import counted, quantity, span

if TYPE_CHECKING:
    from verderer.wire.client import ApiClient
    from verderer.wire.runs import EndedOut, ReasonOut, WhyOut

_MOST = 200

TargetArgument = Annotated[
    str, typer.Argument(metavar="RUN[/STEP]", help="A run, or one step of it.")
]


def why(target: TargetArgument, output: OutputOption = Format.TABLE) -> None:
    """Say why a run or a step waits, and the nearest change that would start it."""
    run, _, step = target.partition("/")

    async def work(client: ApiClient) -> tuple[list[WhyOut], bool]:
        from verderer.wire.runs import WhyOut

        path = f"/runs/{await the_run(client, run)}"
        if step:
            return [await client.get(f"{API}{path}/steps/{step}/why", WhyOut)], False
        return await collect(client, f"{path}/why", WhyOut, most=_MOST)

    found, more = ask(work, doing="Asking why")
    if output is not Format.TABLE:
        print_document(found, output)
        return
    if not found:
        print("Nothing of this run waits.")
    for place, one in enumerate(_merged(found)):
        print(("\n" if place else "") + "\n".join(explain(*one)))
    if more:
        say(f"These are the first {_MOST} steps.", Tone.DIM)


def _merged(found: list[WhyOut]) -> list[tuple[WhyOut, int]]:
    """Steps that wait for the same reasons are told once; with how many more there are."""
    groups: dict[object, list[WhyOut]] = {}
    for one in found:
        reasons = tuple(
            (r.code, r.cluster, r.group, r.resource, r.asked, r.free, r.total, tuple(r.others))
            for r in one.reasons
        )
        groups.setdefault((one.state, one.nodes, str(one.requests), reasons), []).append(one)
    return [(group[0], len(group) - 1) for group in groups.values()]


def explain(one: WhyOut, others: int = 0, now: datetime | None = None) -> list[str]:
    """The lines about one step; `others` wait for the same reasons."""
    word, tone = look(one.state)
    since = ""
    if one.since and one.state == "waiting":
        waited = ((now or datetime.now(UTC)) - one.since).total_seconds()
        since = f" for {span(waited)}"
    also = f" (and {counted(others, 'more step')} like it)" if others else ""
    asks = _asks(one)
    lines = [f"{paint(clean(one.step), Tone.STRONG)}{also}  {paint(word, tone)}{since}"]
    if asks:
        lines.append(f"  {paint(asks, Tone.DIM)}")
    if one.ended is not None:
        return [*lines, *_how_it_ended(one.ended)]
    if not one.reasons:
        return [*lines, "  It does not wait."]
    longest = max(len(clean(r.cluster or r.group)) for r in one.reasons)
    for reason in one.reasons:
        lines += _reason(reason, longest)
    return lines


def _how_it_ended(ended: EndedOut) -> list[str]:
    """What happened, what lies behind it, and what helps."""
    lines = [f"  attempt {ended.attempt} {clean(ended.message)}"]
    if ended.behind:
        lines.append(f"  {paint(clean(ended.behind), Tone.BAD)}")
    if ended.change:
        lines.append(f"  {paint('→', Tone.BUSY)} {clean(ended.change)}")
    return lines


def _reason(reason: ReasonOut, longest: int) -> list[str]:
    """Cluster, sentence, and below it what would change that; long ones go on below."""
    head = f"  {clean(reason.cluster or reason.group).ljust(longest)}" + ("  " if longest else "")
    room = max(20, (width() or 200) - len(head))
    message = textwrap.wrap(clean(reason.message or reason.code.replace("_", " ")), room) or [""]
    never = paint(" (waiting will not help)", Tone.UNSURE) if reason.never else ""
    lines = [head + message[0]] + [" " * len(head) + part for part in message[1:]]
    if len(message[-1]) + 24 <= room:
        lines[-1] += never
    for place, part in enumerate(textwrap.wrap(clean(reason.change), room - 2)):
        mark = paint("→", Tone.BUSY) if place == 0 else " "
        lines.append(" " * len(head) + f"{mark} {part}")
    return lines


def _asks(one: WhyOut) -> str:
    amounts = [f"{quantity(text, name)} {name}" for name, text in one.requests.items()]
    if not amounts:
        return ""
    each = f" on each of {one.nodes} nodes" if one.nodes > 1 else ""
    return f"asks {', '.join(amounts)}{each}"
