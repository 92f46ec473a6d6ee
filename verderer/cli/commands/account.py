"""`login`, `logout`, `whoami`: who one is, and where."""

from __future__ import annotations

import sys
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated

import typer

from verderer.cli.commands import contexts, remote
from verderer.cli.commands.contexts import Context
from verderer.cli.screen.printing import Format, OutputOption, print_document, print_facts
from verderer.cli.screen.terminal import Tone, clean, say
from verderer.core.errors import Invalid, NotAllowed, NotAuthenticated

if TYPE_CHECKING:
    from verderer.wire.users import Account, TokenGiven

_TRIES = 3


def login(
    url: Annotated[
        str, typer.Argument(help="The server. (default: the current one, or this machine's)")
    ] = "",
    email: Annotated[str, typer.Option("--email", help="Asked for when it is left out.")] = "",
    token: Annotated[
        str,
        typer.Option(
            "--token",
            help="A token instead of a password; - reads it from standard input. Other users see "
            "a command line.",
        ),
    ] = "",
    context: Annotated[
        str, typer.Option("--context", help="Name of this login, to keep several.")
    ] = "",
    ca_file: Annotated[
        str, typer.Option("--ca-file", help="PEM file of who signed the server's certificate.")
    ] = "",
) -> None:
    """Log in at a server and keep the token.

    Without a URL it is the server of `verderer up` on this machine. The password is asked for and
    not kept; a one-time password is replaced on the way.
    """
    before = contexts.load()
    name = contexts.check_name(context or before.current)
    known = before.get(name) or Context(name=name)
    wanted = replace(known, url=_address(url) or known.url, ca_file=ca_file or known.ca_file)
    if token:
        secret = sys.stdin.readline().strip() if token == "-" else token
        fresh = replace(wanted, token=secret)
        account = remote.run(_account(fresh))
        fresh = replace(fresh, email=account.email)
    else:
        fresh = _with_password(wanted, email)
    contexts.save(before.with_context(fresh))
    say(f"Logged in at {clean(fresh.url)} as {clean(fresh.email)}.", Tone.GOOD)


def logout(
    context: Annotated[
        str, typer.Option("--context", help="Which login. (default: the current one)")
    ] = "",
) -> None:
    """Forget the token, and revoke it at the server if that answers."""
    from verderer.core.errors import VerdererError

    before = contexts.load()
    name = context or before.current
    known = before.get(name)
    if known is None or not known.token:
        say("Nobody is logged in.")
        return
    try:
        remote.run(_revoke(known))
    except VerdererError as e:
        say(f"The token could not be revoked at {known.url}: {clean(e.message)}", Tone.UNSURE)
    contexts.save(before.without_token(name))
    say(f"Logged out of {clean(known.url)}.")


def whoami(output: OutputOption = Format.TABLE) -> None:
    """Show who one is at which server, and in which projects."""
    context = contexts.logged_in()
    account = remote.run(_account(context))
    if output is not Format.TABLE:
        print_document(account, output)
        return
    roles = ", ".join(f"{name} ({role})" for name, role in sorted(account.roles.items()))
    everything = "all, as a platform admin" if account.platform_admin else "none yet"
    print_facts(
        [
            ("user", account.email),
            ("name", account.name),
            ("server", context.url),
            ("context", context.name),
            ("projects", roles or everything),
            ("token", "may only read" if account.read_only else ""),
        ]
    )


async def _account(context: Context) -> Account:
    from verderer.wire.users import Account

    async with remote.client_of(context) as client, remote.patiently("Asking the server"):
        return await client.get(f"{remote.API}/me", Account)


def _with_password(wanted: Context, email: str) -> Context:
    if not sys.stdin.isatty():
        raise NotAuthenticated(
            "there is no terminal to ask for a password",
            hint="Use --token, or set VERDERER_URL and VERDERER_TOKEN.",
        )
    say(f"Logging in at {clean(wanted.url)}")
    address = email or typer.prompt("E-mail", default=wanted.email or None, err=True)
    for left in reversed(range(_TRIES)):
        password = typer.prompt("Password", hide_input=True, err=True)
        try:
            given = _exchange(wanted, address, password)
        except NotAuthenticated as e:
            if not left:
                raise
            say(clean(e.message), Tone.BAD)
            continue
        return replace(wanted, email=given.email, token=given.token)
    raise AssertionError("unreachable")


def _exchange(wanted: Context, email: str, password: str) -> TokenGiven:
    try:
        return remote.run(_log_in(wanted, email, password))
    except NotAllowed as e:
        if e.code != "must_change_password":
            raise
    say("This password works once. Choose one of your own.")
    while True:
        new = typer.prompt("New password", hide_input=True, confirmation_prompt=True, err=True)
        try:
            return remote.run(_log_in(wanted, email, password, new))
        except Invalid as e:
            if e.code != "weak_password":
                raise
            reasons = "; ".join(p.message for p in e.problems) or e.message
            say(clean(reasons), Tone.BAD)


async def _log_in(wanted: Context, email: str, password: str, new: str = "") -> TokenGiven:
    from verderer.wire.users import TokenGiven

    body = {"email": email, "password": password, "machine": _machine()}
    if new:
        body["new_password"] = new
    anybody = replace(wanted, token="")
    async with remote.client_of(anybody) as client, remote.patiently("Logging in"):
        return await client.post(f"{remote.API}/login", body, TokenGiven)


async def _revoke(known: Context) -> None:
    """The token's number is found by its first characters, which is what the list shows."""
    from verderer.wire.users import TokenInfo

    async with remote.client_of(known) as client, remote.patiently("Logging out"):
        path = f"{remote.API}/me/tokens"
        tokens, _ = await remote.collect(client, "/me/tokens", TokenInfo, most=1_000)
        for one in tokens:
            if one.hint and known.token.startswith(one.hint):
                await client.delete(f"{path}/{one.id}")
                return


def _machine() -> str:
    import socket

    return clean(f"command line on {socket.gethostname()}")[:100]


def _address(url: str) -> str:
    if not url:
        return ""
    return (url if "://" in url else f"https://{url}").rstrip("/")
