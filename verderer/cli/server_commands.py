"""The commands that run the platform: all of it (`up`, `down`) or one process of it."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from verderer.cli.backup.commands import backup, restore
from verderer.cli.lean_start import import_structlog, leave_out_pydantic
from verderer.cli.up.role import COLOURS_VARIABLE, GO_VARIABLE, REFUSED
from verderer.core.errors import Refusal, VerdererError

if TYPE_CHECKING:
    from verderer.settings import Settings

PANEL = "Run the platform"

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
DatabaseUrl = Annotated[
    str | None,
    typer.Option(
        "--database-url",
        help="An external PostgreSQL. Other users see a command line: a password is better "
        "given in VERDERER_DATABASE_URL. (default: an embedded server)",
        show_default=False,
    ),
]


def register(app: typer.Typer) -> None:
    """Add the commands to `app`."""
    for command in (up, down, server, scheduler, agent, migrate, recover, backup, restore):
        app.command(rich_help_panel=PANEL)(command)
    app.command(hidden=True)(postgres)


def up(
    data_dir: DataDir = None,
    host: Annotated[
        str | None, typer.Option(help="Address to listen on. (default: 127.0.0.1)")
    ] = None,
    port: Annotated[int | None, typer.Option(help="TCP port. (default: 8642)")] = None,
    database_url: DatabaseUrl = None,
    objects: Annotated[
        str | None,
        typer.Option(help="s3://bucket/prefix or a folder. (default: in the data folder)"),
    ] = None,
    config: Config = None,
    no_agent: Annotated[
        bool, typer.Option("--no-agent", help="Without the local cluster on this machine.")
    ] = False,
) -> None:
    """Run everything on this machine: database, server, scheduler and a local cluster.

    The local cluster runs pipelines' commands as your own user; --no-agent leaves it out.
    """
    import_structlog()
    from verderer.cli.configuration import load
    from verderer.cli.up.command import Up
    from verderer.cli.up.command import up as run_up

    flags = {
        "data_dir": data_dir,
        "server.host": host,
        "server.port": port,
        "database.url": database_url,
        "objects.url": objects,
    }
    settings = load(config=config, flags=flags)
    run_up(Up(settings=settings, config=config, flags=flags, agent=not no_agent))


def down(
    data_dir: DataDir = None,
    config: Config = None,
    within_s: Annotated[
        float, typer.Option("--within-s", help="Seconds to wait for it to end.")
    ] = 90.0,
) -> None:
    """Stop the `verderer up` of a data folder and wait until it has ended."""
    from verderer.cli.configuration import load
    from verderer.cli.up import lock

    settings = load(config=config, flags={"data_dir": data_dir})
    pid = lock.end(settings.data_dir, within_s=within_s)
    print(f"Stopped process {pid}." if pid else f"Nothing runs on {settings.data_dir}.")


def server(config: Config = None, data_dir: DataDir = None) -> None:
    """Answer people, programs and agents; needs a migrated database."""

    def run(settings: Settings) -> None:
        from verderer.cli import roles

        roles.server(settings)

    leave_out_pydantic()
    _play("server", config, data_dir, run, uses=("verderer.cli.serving", "uvloop"))


def scheduler(config: Config = None, data_dir: DataDir = None) -> None:
    """Place work on clusters; of several schedulers one leads."""

    def run(settings: Settings) -> None:
        from verderer.cli import roles

        roles.scheduler(settings)

    uses = ("verderer.cli.assembly", "verderer.loops.placement", "verderer.loops.janitor", "uvloop")
    _play("scheduler", config, data_dir, run, uses=uses)


def agent(config: Config = None, data_dir: DataDir = None) -> None:
    """Run one cluster's work, beside it; dials out and needs no database."""

    def run(settings: Settings) -> None:
        from verderer.cli import roles

        roles.agent(settings)

    uses = ("verderer.cli.local_agent", "uvloop")
    _play("agent", config, data_dir, run, uses=uses, central=False)


def migrate(
    config: Config = None,
    data_dir: DataDir = None,
    first_login: Annotated[
        Path | None,
        typer.Option(
            "--first-login",
            help="Keep the first administrator's password in this file instead of printing it.",
            show_default=False,
        ),
    ] = None,
) -> None:
    """Bring the database to this release's schema, make the first administrator, and end."""

    def run(settings: Settings) -> None:
        from verderer.cli import roles
        from verderer.cli.data_folder import FirstLogin, leave_first_login

        roles.migrate(settings)
        made = roles.bootstrap(settings)
        if made is None:
            return
        login = FirstLogin(*made)
        if first_login is not None:
            leave_first_login(first_login, login)
        else:
            print(f"First login: {login.email}  one-time password: {login.password}")

    uses = (
        "verderer.store.migrate",
        "verderer.usecases.people.bootstrap",
        "verderer.usecases.clusters",
    )
    _play("migrate", config, data_dir, run, uses=uses)


def recover(
    email: Annotated[str, typer.Argument(help="The account; it is made if there is none.")] = (
        "admin@localhost"
    ),
    config: Config = None,
    data_dir: DataDir = None,
) -> None:
    """Let an administrator in again: a new one-time password, beside the database.

    For when nobody can log in. The account becomes an active platform admin's and its sessions
    end. The database has to run: its own, or that of `verderer up`.
    """

    def run(settings: Settings) -> None:
        from verderer.cli import roles

        address, password = roles.recover(settings, email)
        print(f"Login: {address}  one-time password: {password}")

    _play("recover", config, data_dir, run)


def postgres(config: Config = None, data_dir: DataDir = None) -> None:
    """Run the embedded database; `up` does this."""

    def run(settings: Settings) -> None:
        from verderer.cli import postgres_role

        postgres_role.run(settings)

    _play("postgres", config, data_dir, run, central=False)


def _play(
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
