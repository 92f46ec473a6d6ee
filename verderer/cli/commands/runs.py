"""`runs`, `runs show`, `cancel`, `retry`, `clone`."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated

import typer

from verderer.cli.commands.parameters import ParameterOption, parameters_of
from verderer.cli.commands.remote import API, ask, collect, the_run
from verderer.cli.screen.printing import (
    Format,
    OutputOption,
    print_document,
    print_facts,
    print_table,
)
from verderer.cli.screen.tables import Cell, Column
from verderer.cli.screen.terminal import Tone, clean, look, say
from verderer.cli.screen.words import ago, counted, lasted
from verderer.core.model.run import RunState

if TYPE_CHECKING:
    from verderer.wire.client import ApiClient
    from verderer.wire.runs import RunDetail, RunOut, StepOut, SubmittedRun

OWN_KEY = "cli-"
_USUAL = 20
_SHOWN_STEPS = 200

RunArgument = Annotated[str, typer.Argument(metavar="RUN", help="A run's id, or its name.")]

group = typer.Typer(invoke_without_command=True, help="List runs, or show one.")


@group.callback()
def runs(
    ctx: typer.Context,
    state: Annotated[
        list[RunState] | None,
        typer.Option("--state", "-s", help="May be repeated."),
    ] = None,
    project: Annotated[str, typer.Option("--project", help="Of this project alone.")] = "",
    name: Annotated[str, typer.Option("--name", help="The whole name.")] = "",
    actor: Annotated[str, typer.Option("--actor", help="Who submitted.")] = "",
    cluster: Annotated[str, typer.Option("--cluster", help="That ran on this cluster.")] = "",
    label: Annotated[
        list[str] | None, typer.Option("--label", "-l", help="key=value; may be repeated.")
    ] = None,
    query: Annotated[str, typer.Option("--query", "-q", help="Part of the name.")] = "",
    limit: Annotated[int, typer.Option("--limit", min=1, max=10_000)] = _USUAL,
    oldest: Annotated[bool, typer.Option("--oldest", help="The oldest first.")] = False,
    output: OutputOption = Format.TABLE,
) -> None:
    """List runs, the newest first."""
    if ctx.invoked_subcommand:
        return
    from verderer.wire.runs import RunOut

    asked = {
        "state": [one.value for one in state] if state else None,
        "project": project or None,
        "name": name or None,
        "actor": actor or None,
        "cluster": cluster or None,
        "label": label or None,
        "q": query or None,
        "order": "oldest" if oldest else None,
    }

    async def work(client: ApiClient) -> tuple[list[RunOut], bool]:
        return await collect(client, "/runs", RunOut, most=limit, **asked)

    found, more = ask(work, doing="Listing runs")
    if output is not Format.TABLE:
        print_document(found, output)
        return
    narrowed = any(asked.values())
    empty = "No run matches." if narrowed else "No runs yet. Submit one: verderer run FILE"
    print_run_table(found, empty=empty)
    if more:
        say(f"There are more: --limit {limit * 5}", Tone.DIM)


@group.command()
def show(run: RunArgument, output: OutputOption = Format.TABLE) -> None:
    """Show a run with its steps."""
    from verderer.wire.runs import RunDetail, StepOut

    async def work(client: ApiClient) -> tuple[RunDetail, list[StepOut], bool]:
        path = f"/runs/{await the_run(client, run)}"
        detail = await client.get(API + path, RunDetail)
        steps, more = await collect(client, f"{path}/steps", StepOut, most=_SHOWN_STEPS)
        return detail, steps, more

    detail, steps, more = ask(work, doing="Reading the run")
    if output is not Format.TABLE:
        print_document({"run": detail, "steps": steps}, output)
        return
    _print_detail(detail)
    print()
    _print_steps(steps)
    if more:
        say(f"… and {counted(detail.steps - len(steps), 'more step')}", Tone.DIM)


def cancel(
    run: RunArgument,
    output: OutputOption = Format.TABLE,
) -> None:
    """Cancel a run: what waits ends now, what runs is asked to end."""
    _change(run, "cancel", {}, output, doing="Cancelling")


def retry(
    run: RunArgument,
    everything: Annotated[
        bool, typer.Option("--all", help="What succeeded too, not only what did not.")
    ] = False,
    output: OutputOption = Format.TABLE,
) -> None:
    """Run again what failed or was cancelled, or all of a run."""
    _change(run, "retry", {"all": everything}, output, doing="Retrying")


def clone(
    run: RunArgument,
    parameter: ParameterOption = None,
    output: OutputOption = Format.TABLE,
) -> None:
    """Submit the same pipeline again as a new run."""
    from verderer.wire.runs import SubmittedRun

    given = parameters_of(parameter)

    async def work(client: ApiClient) -> SubmittedRun:
        path = f"{API}/runs/{await the_run(client, run)}/clone"
        body = {"parameters": given}
        return await client.post(path, body, SubmittedRun, idempotency_key=own_key())

    made = ask(work, doing="Cloning")
    print_submitted(made, output)


def own_key() -> str:
    """A key for one command: with it the request may be sent again when the answer is lost."""
    import uuid

    return f"{OWN_KEY}{uuid.uuid4()}"


def print_submitted(made: SubmittedRun, output: Format) -> None:
    """What was submitted: the id alone on standard output, so that scripts can take it."""
    if output is not Format.TABLE:
        print_document(made, output)
        return
    print(made.id)
    known = "" if made.created else " was known by its key"
    say(f"{clean(made.name)}{known}: {counted(made.steps, 'step')}. {clean(made.url)}")


def print_run_table(found: list[RunOut], *, empty: str, now: datetime | None = None) -> None:
    """One line for each run."""
    now = now or datetime.now(UTC)
    columns = [
        Column(title="RUN"),
        Column(title="STATE"),
        Column(title="NAME", shrinks=True, least=20),
        Column(title="PROJECT", rank=2, shrinks=True),
        Column(title="STEPS", rank=1, right=True),
        Column(title="TOOK", rank=4, right=True),
        Column(title="AGE", rank=3, right=True),
        Column(title="BY", rank=5, shrinks=True),
    ]
    rows: list[list[Cell | str]] = [
        [
            run.id,
            Cell(*look(run.state)),
            run.name,
            run.project,
            f"{run.steps - run.open}/{run.steps}",
            lasted(run.started_at, run.ended_at, now),
            ago(run.created_at, now),
            run.actor.removeprefix("user:"),
        ]
        for run in found
    ]
    print_table(columns, rows, empty=empty)


def _change(run: str, verb: str, body: dict[str, bool], output: Format, *, doing: str) -> None:
    from verderer.wire.runs import RunStateOut

    async def work(client: ApiClient) -> RunStateOut:
        path = f"{API}/runs/{await the_run(client, run)}/{verb}"
        return await client.post(path, body or None, RunStateOut)

    found = ask(work, doing=doing)
    if output is not Format.TABLE:
        print_document(found, output)
        return
    say(f"Run {found.id} is {clean(found.state)}.")
    if found.state == "cancelling":
        say("What still runs is asked to end; `verderer watch` shows when it has.", Tone.DIM)


def _print_detail(run: RunDetail) -> None:
    now = datetime.now(UTC)
    counts = ", ".join(f"{n} {state}" for state, n in run.counts.items())
    by = run.actor.removeprefix("user:")
    given = run.idempotency_key or ""
    key = "" if given.startswith(OWN_KEY) else given
    print_facts(
        [
            ("run", run.id),
            ("name", run.name),
            ("project", run.project),
            ("state", Cell(*look(run.state))),
            ("steps", counts),
            ("submitted", f"{ago(run.created_at, now)} by {by}"),
            ("took", lasted(run.started_at, run.ended_at, now)),
            ("labels", " ".join(f"{k}={v}" for k, v in sorted(run.labels.items()))),
            ("parameters", " ".join(f"{k}={v}" for k, v in run.parameters.items())),
            ("key", key),
            ("cloned from", run.cloned_from or ""),
        ]
    )


def _print_steps(steps: list[StepOut]) -> None:
    now = datetime.now(UTC)
    columns = [
        Column(title="#", rank=4, right=True),
        Column(title="STEP", shrinks=True, least=16),
        Column(title="STATE"),
        Column(title="CLUSTER", rank=2, shrinks=True),
        Column(title="NODE", rank=5, shrinks=True),
        Column(title="TRY", rank=3, right=True),
        Column(title="TOOK", rank=1, right=True),
        Column(title="HOW IT ENDED", rank=1, shrinks=True, least=24),
    ]
    rows: list[list[Cell | str]] = [
        [
            str(step.index),
            step.name,
            Cell(*look(step.state)),
            step.attempt.cluster if step.attempt else "",
            step.attempt.node if step.attempt else "",
            str(step.attempts or ""),
            lasted(step.started_at, step.ended_at, now),
            ending(step),
        ]
        for step in steps
    ]
    print_table(columns, rows, empty="It has no steps.")


def ending(step: StepOut) -> str:
    """How a step's newest attempt ended, in a few words; empty when that needs none."""
    attempt = step.attempt
    if step.note or attempt is None or attempt.cause is None:
        return step.note
    words = {
        "exit": f"exit code {attempt.exit_code}",
        "signal": f"killed by signal {attempt.signal}",
        "oom": "out of its memory limit",
        "timeout": "ran longer than its timeout",
        "cancelled": "cancelled",
        "lost": "lost: nobody saw how it ended",
        "start": "could not be started",
        "output": "an output was not stored",
    }.get(attempt.cause, attempt.cause)
    if attempt.cause == "exit" and attempt.exit_code == 0:
        return ""
    return f"{words}: {attempt.message}" if attempt.message else words
