"""`tokens`, `tokens create`, `tokens revoke`: credentials for programs."""

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
    from verderer.wire.users import TokenInfo, TokenMade

_MOST = 1_000

group = typer.Typer(invoke_without_command=True, help="List, make and revoke your tokens.")


@group.callback()
def tokens(ctx: typer.Context, output: OutputOption = Format.TABLE) -> None:
    """List your own tokens for programs."""
    if ctx.invoked_subcommand:
        return
    from verderer.wire.users import TokenInfo

    async def work(client: ApiClient) -> list[TokenInfo]:
        return (await collect(client, "/me/tokens", TokenInfo, most=_MOST))[0]

    found = ask(work, doing="Listing tokens")
    if output is not Format.TABLE:
        print_document(found, output)
        return
    now = datetime.now(UTC)
    columns = [
        Column(title="ID", right=True),
        Column(title="NAME", shrinks=True),
        Column(title="TOKEN", rank=2),
        Column(title="MAY", rank=1),
        Column(title="USED", rank=3, right=True),
        Column(title="UNTIL", rank=4),
    ]
    rows = [
        [
            str(one.id),
            one.name,
            f"{one.hint}…",
            "read" if one.read_only else "read, write",
            ago(one.used_at, now) or "never",
            one.expires_at.strftime("%Y-%m-%d") if one.expires_at else "",
        ]
        for one in found
    ]
    print_table(columns, rows, empty="No tokens. Make one: verderer tokens create NAME")


@group.command()
def create(
    name: Annotated[str, typer.Argument(help="What it is for.")],
    days: Annotated[int, typer.Option("--days", min=1, help="How long it works.")] = 90,
    read_only: Annotated[bool, typer.Option("--read-only", help="It may only read.")] = False,
    output: OutputOption = Format.TABLE,
) -> None:
    """Make a token that acts for you. It is shown this once."""
    from verderer.wire.users import TokenMade

    async def work(client: ApiClient) -> TokenMade:
        body = {"name": name, "days": days, "read_only": read_only}
        return await client.post(f"{API}/me/tokens", body, TokenMade)

    made = ask(work, doing="Making the token")
    if output is not Format.TABLE:
        print_document(made, output)
        return
    print(made.token)
    say(f"Token {made.info.id}, {clean(made.info.name)}. It is not shown again.", Tone.DIM)


@group.command()
def revoke(
    token: Annotated[int, typer.Argument(metavar="ID", help="As the list shows it.")],
) -> None:
    """End a token at once, for good."""

    async def work(client: ApiClient) -> None:
        await client.delete(f"{API}/me/tokens/{token}")

    ask(work, doing="Revoking the token")
    say(f"Token {token} works no more.")
