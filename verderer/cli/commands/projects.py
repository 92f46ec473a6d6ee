"""`projects` and `projects create`."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated

import typer

from verderer.cli.commands.remote import API, ask, collect
from verderer.cli.screen.printing import Format, OutputOption, print_document, print_table
from verderer.cli.screen.tables import Column
from verderer.cli.screen.terminal import Tone, clean, say
from verderer.cli.screen.words import ago

if TYPE_CHECKING:
    from verderer.wire.client import ApiClient
    from verderer.wire.users import Account, ProjectInfo

_MOST = 10_000

group = typer.Typer(invoke_without_command=True, help="List projects, or make one.")


@group.callback()
def projects(ctx: typer.Context, output: OutputOption = Format.TABLE) -> None:
    """List the projects that you are in; a platform admin sees all."""
    if ctx.invoked_subcommand:
        return
    from verderer.wire.users import Account, ProjectInfo

    async def work(client: ApiClient) -> tuple[list[ProjectInfo], Account]:
        found, _ = await collect(client, "/projects", ProjectInfo, most=_MOST)
        return found, await client.get(f"{API}/me", Account)

    found, me = ask(work, doing="Listing projects")
    if output is not Format.TABLE:
        print_document(found, output)
        return
    columns = [
        Column(title="PROJECT", shrinks=True),
        Column(title="TITLE", shrinks=True, rank=2),
        Column(title="GROUP", shrinks=True, rank=1),
        Column(title="YOUR ROLE", rank=1),
        Column(title="AGE", right=True, rank=3),
    ]
    now = datetime.now(UTC)
    other = "platform admin" if me.platform_admin else ""
    rows = [
        [one.name, one.title, one.group, me.roles.get(one.name, other), ago(one.created_at, now)]
        for one in found
    ]
    print_table(columns, rows, empty="You are in no project yet. Ask an admin of one.")


@group.command()
def create(
    name: Annotated[str, typer.Argument(help="Stays for ever: a-z, 0-9 and -.")],
    title: Annotated[str, typer.Option("--title", help="For people.")] = "",
    team: Annotated[str, typer.Option("--group", help="Its project group.")] = "default",
    output: OutputOption = Format.TABLE,
) -> None:
    """Make a project, whose first admin you are (platform admins)."""
    from verderer.wire.users import ProjectInfo

    async def work(client: ApiClient) -> ProjectInfo:
        body = {"name": name, "title": title, "group": team}
        return await client.post(f"{API}/projects", body, ProjectInfo)

    made = ask(work, doing="Making the project")
    if output is not Format.TABLE:
        print_document(made, output)
    else:
        say(f"Project {clean(made.name)} is there.", Tone.GOOD)
