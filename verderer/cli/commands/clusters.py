"""`clusters` and its verbs: what there is to run on, adding and removing it."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated

import typer

from verderer.cli.commands.remote import API, ask
from verderer.cli.screen.printing import (
    Format,
    OutputOption,
    print_document,
    print_table,
)
from verderer.cli.screen.tables import Cell, Column
from verderer.cli.screen.terminal import Tone, clean, look, say
from verderer.cli.screen.words import ago, quantity
from verderer.core.errors import Invalid

if TYPE_CHECKING:
    from verderer.wire.client import ApiClient
    from verderer.wire.users import ClusterDetailOut, ClusterOut, Listing

ClusterArgument = Annotated[str, typer.Argument(metavar="CLUSTER", help="The cluster's id.")]

group = typer.Typer(invoke_without_command=True, help="List clusters, or show one.")


@group.callback()
def clusters(ctx: typer.Context, output: OutputOption = Format.TABLE) -> None:
    """List clusters: what there is to run on, and what is free."""
    if ctx.invoked_subcommand:
        return
    from verderer.wire.users import ClusterOut, Listing

    async def work(client: ApiClient) -> Listing[ClusterOut]:
        return await client.get(f"{API}/clusters", Listing[ClusterOut])

    found = ask(work, doing="Listing clusters").items
    if output is not Format.TABLE:
        print_document(found, output)
        return
    columns = [
        Column(title="CLUSTER", shrinks=True, least=16),
        Column(title="STATE"),
        Column(title="KIND", rank=3),
        Column(title="NODES", rank=2, right=True),
        Column(title="FREE", shrinks=True, rank=1, least=20),
        Column(title="HEARD", rank=4, right=True),
    ]
    now = datetime.now(UTC)
    rows: list[list[Cell | str]] = [
        [
            one.id,
            Cell(*look(one.state)),
            one.kind,
            f"{one.ready}/{one.nodes}",
            _free(one),
            ago(one.seen_at, now),
        ]
        for one in found
    ]
    print_table(columns, rows, empty="No clusters. `verderer up` starts one on this machine.")


@group.command()
def show(cluster: ClusterArgument, output: OutputOption = Format.TABLE) -> None:
    """Show a cluster with its capacity, nodes and your own running steps."""
    from verderer.wire.users import ClusterDetailOut

    async def work(client: ApiClient) -> ClusterDetailOut:
        return await client.get(f"{API}/clusters/{cluster}", ClusterDetailOut)

    found = ask(work, doing="Reading the cluster")
    if output is not Format.TABLE:
        print_document(found, output)
        return
    from verderer.cli.commands.cluster_details import print_detail

    print_detail(found)


@group.command()
def add(
    cluster: ClusterArgument,
    kind: Annotated[str, typer.Option("--kind", help="kubernetes, slurm or local.")],
    minutes: Annotated[
        int, typer.Option("--minutes", min=1, max=10_080, help="How long its token works.")
    ] = 60,
    output: OutputOption = Format.TABLE,
) -> None:
    """Make a cluster and the command that lets its agent join, once (platform admins).

    For a cluster that is there it makes another token; its present agent goes on until it is used.
    """
    from verderer.wire.users import InvitationOut

    async def work(client: ApiClient) -> InvitationOut:
        body = {"id": cluster, "kind": kind, "minutes": minutes}
        return await client.post(f"{API}/clusters", body, InvitationOut)

    made = ask(work, doing="Adding the cluster")
    if output is not Format.TABLE:
        print_document(made, output)
        return
    print(made.command)
    say(f"Run this beside the cluster; it works once, for {minutes} min.", Tone.DIM)
    say(f"Then look at it: verderer clusters show {clean(made.cluster)}", Tone.DIM)


@group.command()
def revoke(cluster: ClusterArgument) -> None:
    """Lock a cluster's agent out at once; what runs there goes on (platform admins)."""
    _delete(f"/clusters/{cluster}/agent", doing="Revoking")
    say(f"The agent of {clean(cluster)} is locked out. `verderer clusters add` lets one in again.")


@group.command()
def remove(
    cluster: ClusterArgument,
    yes: Annotated[bool, typer.Option("--yes", help="Without asking.")] = False,
) -> None:
    """Take a cluster out for good; its history stays (platform admins)."""
    if not yes:
        typed = typer.prompt(f"Type {clean(cluster)} to remove it", err=True)
        if typed.strip() != cluster:
            raise Invalid("that is not its id, so nothing was removed")
    _delete(f"/clusters/{cluster}", doing="Removing")
    say(f"Cluster {clean(cluster)} is removed.")


@group.command("declare-lost")
def declare_lost(
    cluster: ClusterArgument,
    yes: Annotated[bool, typer.Option("--yes", help="Without asking.")] = False,
) -> None:
    """Give up what ran on a cluster that will not come back (platform admins).

    Only you can know that nothing runs there any more: steps with retries start elsewhere.
    """
    from verderer.wire.users import LostOut

    if not yes:
        typed = typer.prompt(f"Type {clean(cluster)}, if nothing runs there any more", err=True)
        if typed.strip() != cluster:
            raise Invalid("that is not its id, so nothing was given up")

    async def work(client: ApiClient) -> LostOut:
        return await client.post(f"{API}/clusters/{cluster}/lost", None, LostOut)

    count = ask(work, doing="Giving up").attempts
    say(f"{count} attempts on {clean(cluster)} are given up.")


@group.command()
def disable(cluster: ClusterArgument) -> None:
    """Hand a cluster no more work; what runs there goes on (platform admins)."""
    _set(cluster, "disable", doing="Disabling")


@group.command()
def enable(cluster: ClusterArgument) -> None:
    """Let a cluster have work again (platform admins)."""
    _set(cluster, "enable", doing="Enabling")


def _delete(path: str, *, doing: str) -> None:
    async def work(client: ApiClient) -> None:
        await client.delete(f"{API}{path}")

    ask(work, doing=doing)


def _set(cluster: str, verb: str, *, doing: str) -> None:
    from verderer.wire.users import ClusterDetailOut

    async def work(client: ApiClient) -> ClusterDetailOut:
        return await client.post(f"{API}/clusters/{cluster}/{verb}", None, ClusterDetailOut)

    found = ask(work, doing=doing)
    say(f"Cluster {clean(found.id)} is {clean(found.state)}.")


def _free(one: ClusterOut) -> str:
    rooms = sorted(one.capacity, key=lambda c: ("/" not in c.resource, c.resource))
    return ", ".join(
        f"{quantity(c.free, c.resource)} of {quantity(c.total, c.resource)} {c.resource}"
        for c in rooms
        if c.total != "0"
    )
