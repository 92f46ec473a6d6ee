"""`project-groups` and its verbs: teams, their members, and which projects are theirs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any
from urllib.parse import quote

import typer

from verderer.cli.commands.remote import API, ask, collect
from verderer.cli.screen.printing import Format, OutputOption, print_document, print_table
from verderer.cli.screen.tables import Column
from verderer.cli.screen.terminal import Tone, clean, say

if TYPE_CHECKING:
    from verderer.wire.client import ApiClient
    from verderer.wire.governance import TeamOut

group = typer.Typer(invoke_without_command=True, help="List project groups and manage them.")
Name = Annotated[str, typer.Argument(metavar="GROUP", help="The project group's name.")]
Email = Annotated[str, typer.Argument(metavar="EMAIL")]


@group.callback()
def project_groups(ctx: typer.Context, output: OutputOption = Format.TABLE) -> None:
    """List the project groups of your projects; a platform admin sees all."""
    if ctx.invoked_subcommand:
        return
    from verderer.wire.governance import TeamOut

    async def work(client: ApiClient) -> list[TeamOut]:
        return (await collect(client, "/project-groups", TeamOut, most=10_000))[0]

    found = ask(work, doing="Listing project groups")
    if output is not Format.TABLE:
        print_document(found, output)
        return
    columns = [
        Column(title="GROUP", shrinks=True),
        Column(title="TITLE", shrinks=True, rank=1),
        Column(title="PROJECTS", shrinks=True),
    ]
    rows = [[one.name, one.title, ", ".join(one.projects)] for one in found]
    print_table(columns, rows, empty="You are in no project yet. Ask an admin of one.")


@group.command()
def create(
    name: Name, title: Annotated[str, typer.Option("--title", help="For people.")] = ""
) -> None:
    """Make a project group (platform admins)."""
    _send("post", "", {"name": name, "title": title}, doing="Making the project group")
    say(f"Project group {clean(name)} is made.", Tone.GOOD)
    say("Grant it a resource group: verderer resource-groups grant --default …", Tone.DIM)


@group.command()
def delete(name: Name) -> None:
    """Delete a project group that has no project (platform admins)."""
    ask(lambda client: client.delete(_path(name)), doing="Deleting the project group")
    say(f"Project group {clean(name)} is deleted.")


@group.command()
def move(project: Annotated[str, typer.Argument(metavar="PROJECT")], name: Name) -> None:
    """Give a project to a group: members and resource groups change with it."""
    _send("put", f"{_path(name)}/projects/{quote(project, safe='')}", {}, doing="Moving")
    say(f"{clean(project)} belongs to {clean(name)}.")


@group.command("set-member")
def set_member(
    name: Name,
    email: Email,
    role: Annotated[str, typer.Option("--role", help="member or admin.")] = "member",
) -> None:
    """Give somebody a role in every project of the group."""
    path = f"{_path(name)}/members/{quote(email, safe='')}"

    async def work(client: ApiClient) -> None:
        await client.put(path, {"role": role}, dict[str, Any])

    ask(work, doing="Giving the role")
    say(f"{clean(email)} is {clean(role)} of {clean(name)}.", Tone.GOOD)


@group.command("remove-member")
def remove_member(name: Name, email: Email) -> None:
    """Take somebody out of the group at once; roles in single projects stay."""
    path = f"{_path(name)}/members/{quote(email, safe='')}"
    ask(lambda client: client.delete(path), doing="Removing")
    say(f"{clean(email)} is no member of {clean(name)} any more.")


def _path(name: str) -> str:
    return f"{API}/project-groups/{quote(name, safe='')}"


def _send(method: str, path: str, body: dict[str, Any], *, doing: str) -> TeamOut:
    async def work(client: ApiClient) -> TeamOut:
        from verderer.wire.governance import TeamOut

        if method == "put":
            return await client.put(path, body, TeamOut)
        return await client.post(path or f"{API}/project-groups", body, TeamOut)

    return ask(work, doing=doing)
