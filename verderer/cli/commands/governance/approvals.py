"""`approvals` and its verbs: ask for access or quota, and decide."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated, Any

import typer

from verderer.cli.commands.parameters import pairs_of
from verderer.cli.commands.remote import API, ask, collect
from verderer.cli.screen.printing import Format, OutputOption, print_document, print_table
from verderer.cli.screen.tables import Column
from verderer.cli.screen.terminal import Tone, clean, say
from verderer.cli.screen.words import ago

if TYPE_CHECKING:
    from verderer.wire.client import ApiClient
    from verderer.wire.governance import ApprovalOut

group = typer.Typer(invoke_without_command=True, help="Ask for access or quota, and decide.")
Number = Annotated[int, typer.Argument(metavar="NUMBER", help="The request's number.")]
Note = Annotated[str, typer.Option("--note", help="Why; whoever asked reads it.")]


@group.callback()
def approvals(
    ctx: typer.Context,
    state: Annotated[
        str, typer.Option("--state", help="requested, approved, denied, withdrawn or expired.")
    ] = "",
    output: OutputOption = Format.TABLE,
) -> None:
    """List requests of your project groups, the newest first."""
    if ctx.invoked_subcommand:
        return
    from verderer.wire.governance import ApprovalOut

    path = "/approvals" + (f"?state={state}" if state else "")

    async def work(client: ApiClient) -> list[ApprovalOut]:
        return (await collect(client, path, ApprovalOut, most=1000))[0]

    found = ask(work, doing="Listing requests")
    if output is not Format.TABLE:
        print_document(found, output)
        return
    columns = [
        Column(title="NUMBER", right=True),
        Column(title="STATE"),
        Column(title="WHAT", shrinks=True, least=24),
        Column(title="FOR", shrinks=True),
        Column(title="BY", shrinks=True, rank=1),
        Column(title="AGE", right=True, rank=2),
    ]
    now = datetime.now(UTC)
    rows: list[list[Any]] = [
        [
            str(one.id),
            one.state,
            _what(one),
            one.project_group,
            one.requested_by.removeprefix("user:"),
            ago(one.requested_at, now),
        ]
        for one in found
    ]
    print_table(columns, rows, empty="Nothing was asked for.")


@group.command("ask")
def request(
    resource_group: Annotated[str, typer.Argument(metavar="RESOURCE_GROUP")],
    project: Annotated[str, typer.Option("--project", help="For whose group it is.")],
    reason: Annotated[str, typer.Option("--reason", help="Why; whoever decides reads it.")],
    quota: Annotated[
        list[str] | None,
        typer.Option("--quota", help="RESOURCE=AMOUNT that is wanted; without it: access."),
    ] = None,
    until: Annotated[
        datetime | None, typer.Option("--until", help="Access until then alone.")
    ] = None,
) -> None:
    """Ask for access to a resource group, or for a larger quota of it."""
    body = {
        "project": project,
        "resource_group": resource_group,
        "reason": reason,
        "quota": pairs_of(quota or [], "--quota"),
        "expires_at": None if until is None else until.astimezone().isoformat(),
    }

    async def work(client: ApiClient) -> int:
        from verderer.wire.governance import AskedOut

        return (await client.post(f"{API}/approvals", body, AskedOut)).id

    number = ask(work, doing="Asking")
    say(f"Request {number} waits for a platform admin.", Tone.GOOD)


@group.command()
def approve(number: Number, note: Note = "") -> None:
    """Approve a request; it holds from now on (platform admins)."""
    _decide(number, "approve", note)
    say(f"Request {number} is approved.", Tone.GOOD)


@group.command()
def deny(number: Number, note: Note = "") -> None:
    """Deny a request (platform admins)."""
    _decide(number, "deny", note)
    say(f"Request {number} is denied.")


@group.command()
def withdraw(number: Number) -> None:
    """Take your own request back."""
    _decide(number, "withdraw", None)
    say(f"Request {number} is withdrawn.")


def _decide(number: int, what: str, note: str | None) -> None:
    body = {} if note is None else {"note": note}

    async def work(client: ApiClient) -> None:
        from verderer.wire.governance import ApprovalOut

        await client.post(f"{API}/approvals/{number}/{what}", body, ApprovalOut)

    ask(work, doing="Deciding")


def _what(one: ApprovalOut) -> str:
    if one.kind == "access":
        return f"use {clean(one.resource_group)}"
    wanted = ", ".join(f"{name} {amount}" for name, amount in one.quota.items())
    return f"{wanted} in {clean(one.resource_group)}"
