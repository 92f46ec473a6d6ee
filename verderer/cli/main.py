"""`verderer`: puts the commands together and turns our errors into words and exit codes."""

from __future__ import annotations

import sys

import typer

from verderer.cli import server_commands
from verderer.core.errors import VerdererError

app = typer.Typer(
    name="verderer",
    help="One control plane over many AI compute clusters, Kubernetes and Slurm.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
server_commands.register(app)


def main() -> None:
    """Run the command that the command line names."""
    try:
        app()
    except VerdererError as e:
        print(f"Error: {e.message}", file=sys.stderr)
        if e.hint:
            print(f"Hint: {e.hint}", file=sys.stderr)
        sys.exit(1)


if __name__ == "__main__":
    main()
