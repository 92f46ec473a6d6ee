"""`run FILE` and `watch RUN`: submit a pipeline, see what it does, and end as it ended."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from verderer.cli.commands import contexts
from verderer.cli.commands.logs import Asked, Part, lines_of
from verderer.cli.commands.parameters import ParameterOption, parameters_of
from verderer.cli.commands.remote import API, client_of, collect, patiently, the_run
from verderer.cli.commands.remote import run as run_work
from verderer.cli.commands.runs import RunArgument, ending, own_key, print_submitted
from verderer.cli.screen.failures import Exit, print_problems
from verderer.cli.screen.printing import Format, OutputOption, print_document
from verderer.cli.screen.terminal import Tone, clean, clean_output, colours_on, paint, say
from verderer.core.errors import Invalid, VerdererError

if TYPE_CHECKING:
    from verderer.wire.client import ApiClient
    from verderer.wire.runs import RunOut, StepOut, SubmittedRun

_TAIL = 20
_MOST_TAILS = 3

FileArgument = Annotated[str, typer.Argument(metavar="FILE", help="The pipeline; - reads it.")]


def run(
    file: FileArgument,
    parameter: ParameterOption = None,
    project: Annotated[
        str, typer.Option("--project", help="(default: the document's, or your only one)")
    ] = "",
    resource_group: Annotated[
        str,
        typer.Option(
            "--resource-group", help="(default: the document's, or the project's default)"
        ),
    ] = "",
    watching: Annotated[
        bool | None,
        typer.Option(
            "--watch/--no-watch",
            help="Stay until it is over and end with its result. (default: stay, unless -o)",
            show_default=False,
        ),
    ] = None,
    key: Annotated[
        str, typer.Option("--key", help="The same key gives the run of the first time.")
    ] = "",
    output: OutputOption = Format.TABLE,
) -> None:
    """Submit a pipeline and watch it run.

    Ends with 0 when the run succeeded and with 1 when it did not. Ctrl-C asks whether to cancel.
    """
    stay = watching if watching is not None else output is Format.TABLE
    text = read_file(file)
    try:
        made = run_work(_submit(text, parameters_of(parameter), (project, resource_group), key))
    except Invalid as e:
        if not any(p.line for p in e.problems):
            raise
        print_problems(file, text.decode("utf-8", "replace"), e.problems)
        raise typer.Exit(Exit.FAILED) from None
    if not stay:
        print_submitted(made, output)
        return
    say(f"{clean(made.name)} {made.id}  {clean(made.url)}", Tone.DIM)
    raise typer.Exit(_until_over(made.id, output))


def watch_run(target: RunArgument, output: OutputOption = Format.TABLE) -> None:
    """Watch a run until it is over; ends with its result as `run` does."""
    raise typer.Exit(_until_over(target, output))


def read_file(name: str) -> bytes:
    """A document from a file, or from standard input for `-`.

    Raises:
        Invalid: it cannot be read.
    """
    if name == "-":
        return sys.stdin.buffer.read()
    try:
        return Path(name).read_bytes()
    except OSError as e:
        raise Invalid(f"{name} cannot be read: {e.strerror or e}") from e


async def _submit(
    text: bytes, parameters: dict[str, str], where: tuple[str, str], key: str
) -> SubmittedRun:
    """`where`: the names of a project and a resource group, or empty."""
    from verderer.wire.runs import NewRun, SubmittedRun

    try:
        body = NewRun(
            pipeline=text.decode("utf-8"),
            parameters=dict(parameters),
            project=where[0] or None,
            resource_group=where[1],
        )
    except UnicodeDecodeError:
        from verderer.core.pipeline.parse import parse

        parse(text)  # says where
        raise
    once = key or own_key()
    async with client_of(contexts.logged_in()) as client, patiently("Submitting"):
        return await client.post(f"{API}/runs", body, SubmittedRun, idempotency_key=once)


def _until_over(target: str, output: Format) -> Exit:
    from verderer.cli.commands.watching import summary

    try:
        ended, failed = run_work(_follow(target, output))
    except KeyboardInterrupt:
        _offer_to_cancel(target)
        return Exit.INTERRUPTED
    if output is not Format.TABLE:
        print_document(ended, output)
    else:
        print(summary(ended))
        for step, lines in failed:
            _print_tail(ended.id, step, lines)
    return Exit.OK if ended.state == "succeeded" else Exit.FAILED


async def _follow(target: str, output: Format) -> tuple[RunOut, list[tuple[StepOut, list[str]]]]:
    from verderer.cli.commands.watching import watch

    async with client_of(contexts.logged_in()) as client:
        run_id = await the_run(client, target)
        # A document on standard output stands there alone.
        stream = sys.stdout if output is Format.TABLE else sys.stderr
        ended = await watch(client, run_id, stream)
        if ended.state == "succeeded":
            return ended, []
        async with patiently("Reading the output"):
            return ended, await _failures(client, run_id)


async def _failures(client: ApiClient, run_id: str) -> list[tuple[StepOut, list[str]]]:
    from verderer.wire.runs import StepOut

    steps, _ = await collect(client, f"/runs/{run_id}/steps", StepOut, most=10_000)
    failed = [one for one in steps if one.state in ("failed", "lost")]
    asked = Asked(tail=_TAIL)
    tails = []
    for one in failed[:_MOST_TAILS]:
        part = Part(step=one.name, replica=0, prefix="")
        try:
            lines = [line async for line in lines_of(client, run_id, part, asked)]
        except VerdererError as e:
            lines = [f"[verderer] the output cannot be read now: {e.message}"]
        tails.append((one, lines))
    return tails


def _print_tail(run_id: str, step: StepOut, lines: list[str]) -> None:
    how = ending(step) or step.state
    print(f"\n{paint(clean(step.name), Tone.STRONG)}  {paint(clean(how), Tone.BAD)}")
    colours = colours_on(sys.stdout)
    for line in lines:
        print(f"  {clean_output(line, colours=colours)}")
    if len(lines) >= _TAIL:
        say(f"  all of it: verderer logs {run_id}/{clean(step.name)}", Tone.DIM)


def _offer_to_cancel(target: str) -> None:
    """Leaving is not cancelling: the run belongs to the cluster now."""
    say()
    if sys.stdin.isatty() and _confirmed():
        try:
            state = run_work(_cancel(target))
            say(f"The run is {state}.")
            return
        except VerdererError as e:
            say(f"It could not be cancelled: {clean(e.message)}", Tone.BAD)
    say(f"The run goes on. Watch it again: verderer watch {clean(target)}")


def _confirmed() -> bool:
    try:
        return typer.confirm("Cancel the run?", default=False, err=True)
    except (typer.Abort, KeyboardInterrupt):
        say()
        return False


async def _cancel(target: str) -> str:
    from verderer.wire.runs import RunStateOut

    async with client_of(contexts.logged_in()) as client:
        path = f"{API}/runs/{await the_run(client, target)}/cancel"
        return (await client.post(path, None, RunStateOut)).state
