"""`verderer`: puts the commands together and turns our errors into words and exit codes."""

from __future__ import annotations

import os
import sys
from typing import Annotated

import typer

from verderer.cli import carrying, server_commands
from verderer.cli.commands import registry
from verderer.cli.commands.contexts import CONTEXT_VARIABLE
from verderer.cli.help import GroupedHelp
from verderer.cli.leaving import ends_at_once
from verderer.cli.screen.failures import Exit, exit_code_of, print_error
from verderer.core.errors import VerdererError
from verderer.core.version import VERSION

app = typer.Typer(
    name="verderer",
    cls=GroupedHelp,
    help="One control plane over many AI compute clusters, Kubernetes and Slurm.",
    no_args_is_help=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
registry.register(app)
server_commands.register(app)
carrying.register(app)


@app.callback()
def everywhere(
    context: Annotated[
        str, typer.Option("--context", help="Which login to use, as `login --context` named it.")
    ] = "",
    version: Annotated[  # noqa: ARG001 what it does is done when it is read
        bool, typer.Option("--version", is_eager=True, callback=lambda v: _show_version(v))
    ] = False,
) -> None:
    """One control plane over many AI compute clusters, Kubernetes and Slurm."""
    if context:
        os.environ[CONTEXT_VARIABLE] = context


def _show_version(asked: bool) -> None:
    if asked:
        print(VERSION)
        raise typer.Exit


def run() -> None:
    """Run the command that the command line names; `SystemExit` where it says anything but 0."""
    try:
        app()
    except VerdererError as e:
        print_error(e)
        sys.exit(exit_code_of(e))
    except KeyboardInterrupt:
        sys.exit(Exit.INTERRUPTED)


def main() -> None:
    """Be the process that runs the command that the command line names."""
    with ends_at_once():
        run()


if __name__ == "__main__":
    main()
