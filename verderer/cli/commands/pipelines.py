"""`pipelines validate FILE` and `pipelines schema`: both work without a server."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import typer

from verderer.cli.commands.parameters import ParameterOption, parameters_of
from verderer.cli.commands.submit import FileArgument, read_file
from verderer.cli.screen.failures import Exit, print_problems
from verderer.cli.screen.printing import Format, OutputOption, print_document, print_table
from verderer.cli.screen.tables import Column
from verderer.cli.screen.terminal import Tone, clean, say
from verderer.cli.screen.words import counted, quantity
from verderer.core.errors import Problem

if TYPE_CHECKING:
    from verderer.wire.users import ValidationOut

group = typer.Typer(help="Check pipelines before they run.", no_args_is_help=True)


@group.command()
def validate(
    file: FileArgument,
    parameter: ParameterOption = None,
    output: OutputOption = Format.TABLE,
) -> None:
    """Check a pipeline without a server, and show what a run of it would consist of.

    Ends with 1 when there is something wrong, each with its line, column and remedy.
    """
    from verderer.wire.validation import validate as check

    text = read_file(file)
    given = parameters_of(parameter)
    found = check(text, dict(given) if parameter else None)
    if output is not Format.TABLE:
        print_document(found, output)
    elif found.valid:
        _describe(file, found)
    else:
        problems = [
            Problem(message=p.message, field=p.field, line=p.line, column=p.column, hint=p.hint)
            for p in found.problems
        ]
        print_problems(file, text.decode("utf-8", "replace"), problems)
        say(counted(len(problems), "problem"), Tone.BAD)
    if not found.valid:
        raise typer.Exit(Exit.FAILED)


@group.command()
def schema() -> None:
    """Print the JSON Schema of a pipeline, for editors."""
    from verderer.core.pipeline.schema import as_json

    sys.stdout.write(as_json())


def _describe(file: str, found: ValidationOut) -> None:
    say(
        f"{clean(file)} is valid: {clean(found.name)}, {counted(found.instances, 'step')}, "
        f"{counted(found.edges, 'dependency', 'dependencies')}",
        Tone.GOOD,
    )
    columns = [
        Column(title="STEP", shrinks=True),
        Column(title="TIMES", right=True, rank=2),
        Column(title="NEEDS", shrinks=True, rank=1),
        Column(title="ASKS", shrinks=True, rank=3),
    ]
    rows = [
        [
            step.name,
            str(step.instances),
            ", ".join(step.needs),
            ", ".join(f"{quantity(text, name)} {name}" for name, text in step.requests.items())
            + (f" × {step.nodes} nodes" if step.nodes > 1 else ""),
        ]
        for step in found.steps
    ]
    print_table(columns, rows, empty="It has no steps.")
    if found.parameters:
        print()
        print_table(
            [
                Column(title="PARAMETER", shrinks=True),
                Column(title="TYPE", rank=1),
                Column(title="DEFAULT", shrinks=True),
                Column(title="ABOUT", shrinks=True, rank=2),
            ],
            [
                [
                    one.name,
                    one.type,
                    "(must be given)" if one.default is None else one.default,
                    one.description or " | ".join(one.choices),
                ]
                for one in found.parameters
            ],
            empty="",
        )
