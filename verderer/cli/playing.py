"""Plays one role in this process: settings, log, and an end that says why."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from verderer.cli.lean_start import import_structlog
from verderer.cli.up.role import COLOURS_VARIABLE, GO_VARIABLE, REFUSED
from verderer.core.errors import Refusal, VerdererError

if TYPE_CHECKING:
    from verderer.settings import Settings

Config = Annotated[
    Path | None,
    typer.Option(
        "--config",
        help="Settings file (TOML). (default: verderer.toml in the data folder, if there)",
        show_default=False,
    ),
]
DataDir = Annotated[
    Path | None,
    typer.Option(
        "--data-dir",
        help="Folder of everything that survives a restart. (default: ~/.local/share/verderer)",
        show_default=False,
    ),
]


def play(
    role: str,
    config: Path | None,
    data_dir: Path | None,
    run: Callable[[Settings], None],
    *,
    uses: tuple[str, ...] = (),
    central: bool = True,
) -> None:
    """Read settings, set the log up, and run a role to its end.

    `uses` are the modules that the role will import: the supervisor has that done ahead of time.
    `central` roles are handed the secret key and the database's address, whatever they come
    from. A role that cannot work as configured ends with the code that says so.
    """
    import_structlog()
    import structlog

    from verderer.cli.configuration import load
    from verderer.telemetry import logs

    logs.configure(role=role)
    try:
        settings = load(config=config, flags={"data_dir": data_dir})
        colours = True if COLOURS_VARIABLE in os.environ else None
        logs.configure(
            role=role, format=settings.log.format, level=settings.log.level, colours=colours
        )
        _wait_for_go(uses)
        run(_complete(settings) if central else settings)
    except VerdererError as e:
        structlog.get_logger().error(e.message, hint=e.hint, code=e.code)
        raise typer.Exit(REFUSED if isinstance(e, Refusal) else 1) from e
    except Exception as e:
        # One event of the log, not thirty lines of it.
        structlog.get_logger().exception("crashed")
        raise typer.Exit(1) from e


def _wait_for_go(uses: tuple[str, ...]) -> None:
    if GO_VARIABLE not in os.environ:
        return
    for name in uses:
        import_module(name)
    if not sys.stdin.readline():
        raise typer.Exit(1)  # the supervisor is gone


def _complete(settings: Settings) -> Settings:
    from verderer.cli.data_folder import with_secret_key
    from verderer.settings import Secret
    from verderer.store.embedded.launcher import dsn_at

    complete = with_secret_key(settings)
    if complete.database.url is not None:
        return complete
    address = Secret(dsn_at(settings.postgres_dir))
    return replace(complete, database=replace(complete.database, url=address))
