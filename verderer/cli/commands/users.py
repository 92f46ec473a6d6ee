"""`users` and its verbs: accounts, for platform admins."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated, Any
from urllib.parse import quote

import typer

from verderer.cli.commands.remote import API, ask, collect
from verderer.cli.screen.printing import Format, OutputOption, print_document, print_table
from verderer.cli.screen.tables import Column
from verderer.cli.screen.terminal import Tone, clean, say
from verderer.cli.screen.words import ago

if TYPE_CHECKING:
    from verderer.wire.client import ApiClient
    from verderer.wire.users import UserInfo, UserMade

_MOST = 100_000

group = typer.Typer(invoke_without_command=True, help="List accounts and manage them.")
Email = Annotated[str, typer.Argument(metavar="EMAIL", help="The account's e-mail address.")]


@group.callback()
def users(ctx: typer.Context, output: OutputOption = Format.TABLE) -> None:
    """List all accounts (platform admins)."""
    if ctx.invoked_subcommand:
        return
    from verderer.wire.users import UserInfo

    async def work(client: ApiClient) -> list[UserInfo]:
        return (await collect(client, "/users", UserInfo, most=_MOST))[0]

    found = ask(work, doing="Listing accounts")
    if output is not Format.TABLE:
        print_document(found, output)
        return
    columns = [
        Column(title="EMAIL", shrinks=True),
        Column(title="NAME", shrinks=True, rank=2),
        Column(title="ROLE", rank=1),
        Column(title="STATE"),
        Column(title="AGE", right=True, rank=3),
    ]
    now = datetime.now(UTC)
    rows = [
        [
            one.email,
            one.name,
            "platform admin" if one.platform_admin else "",
            _state(one),
            ago(one.created_at, now),
        ]
        for one in found
    ]
    print_table(columns, rows, empty="There are no accounts.")


@group.command()
def add(
    email: Email,
    name: Annotated[str, typer.Option("--name", help="For people.")] = "",
    platform_admin: Annotated[
        bool, typer.Option("--platform-admin", help="May do everything.")
    ] = False,
    output: OutputOption = Format.TABLE,
) -> None:
    """Make an account. Its one-time password is shown this once."""
    body = {"email": email, "name": name, "platform_admin": platform_admin}
    _made("/users", body, output, doing="Making the account")


@group.command("reset-password")
def reset_password(email: Email, output: OutputOption = Format.TABLE) -> None:
    """Give somebody a new one-time password, and end their sessions.

    Nobody can log in any more? `verderer recover` does it beside the database.
    """
    _made(f"{_path(email)}/password", {}, output, doing="Resetting the password")


@group.command()
def deactivate(email: Email) -> None:
    """Lock somebody out at once: sessions end, tokens are revoked for good."""
    _change(email, active=False)
    say(f"{clean(email)} is locked out.")


@group.command()
def activate(email: Email) -> None:
    """Let somebody log in again."""
    _change(email, active=True)
    say(f"{clean(email)} may log in again.", Tone.GOOD)


@group.command()
def promote(email: Email) -> None:
    """Make somebody a platform admin."""
    _change(email, platform_admin=True)
    say(f"{clean(email)} is a platform admin.")


@group.command()
def demote(email: Email) -> None:
    """Let somebody be a platform admin no longer."""
    _change(email, platform_admin=False)
    say(f"{clean(email)} is no platform admin any more.")


def _made(path: str, body: dict[str, Any], output: Format, *, doing: str) -> None:
    from verderer.wire.users import UserMade

    async def work(client: ApiClient) -> UserMade:
        return await client.post(API + path, body, UserMade)

    made = ask(work, doing=doing)
    if output is not Format.TABLE:
        print_document(made, output)
        return
    print(made.password)
    say(f"The one-time password of {clean(made.user.email)}. It is not shown again.", Tone.DIM)


def _change(email: str, **what: bool) -> None:
    from verderer.wire.users import UserInfo

    async def work(client: ApiClient) -> UserInfo:
        return await client.patch(API + _path(email), what, UserInfo)

    ask(work, doing="Changing the account")


def _path(email: str) -> str:
    return f"/users/{quote(email, safe='')}"


def _state(one: UserInfo) -> str:
    if not one.active:
        return "locked out"
    return "password not chosen yet" if one.must_change else "active"
