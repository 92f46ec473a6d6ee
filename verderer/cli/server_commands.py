"""The commands that run the platform: all of it (`up`, `down`) or one process of it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from verderer.cli.agents import commands as agent_commands
from verderer.cli.backup.commands import backup, restore
from verderer.cli.lean_start import import_structlog, leave_out_pydantic
from verderer.cli.playing import Config, DataDir, play

if TYPE_CHECKING:
    from verderer.settings import Settings

PANEL = "Run the platform"

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
    for command in (up, down, server, scheduler, migrate, recover, backup, restore):
        app.command(rich_help_panel=PANEL)(command)
    app.add_typer(agent_commands.group, name="agent", rich_help_panel=PANEL)
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
    play("server", config, data_dir, run, uses=("verderer.cli.serving", "uvloop"))


def scheduler(config: Config = None, data_dir: DataDir = None) -> None:
    """Place work on clusters; of several schedulers one leads."""

    def run(settings: Settings) -> None:
        from verderer.cli import roles

        roles.scheduler(settings)

    uses = ("verderer.cli.assembly", "verderer.loops.placement", "verderer.loops.janitor", "uvloop")
    play("scheduler", config, data_dir, run, uses=uses)


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
    post: Annotated[
        bool,
        typer.Option(
            "--post", help="Also what may come only when nothing of the last release runs any more."
        ),
    ] = False,
) -> None:
    """Bring the database to this release's schema, make the first administrator, and end.

    What the last release still needs is kept until `--post`; an empty database gets everything.
    """

    def run(settings: Settings) -> None:
        from verderer.cli import roles
        from verderer.cli.data_folder import FirstLogin, leave_first_login

        roles.migrate(settings, post=post)
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
    play("migrate", config, data_dir, run, uses=uses)


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

    play("recover", config, data_dir, run)


def postgres(config: Config = None, data_dir: DataDir = None) -> None:
    """Run the embedded database; `up` does this."""

    def run(settings: Settings) -> None:
        from verderer.cli import postgres_role

        postgres_role.run(settings)

    play("postgres", config, data_dir, run, central=False)
