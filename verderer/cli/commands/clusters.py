"""`clusters`, `clusters show`, `clusters disable`, `clusters enable`."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated

import typer

from verderer.cli.commands.remote import API, ask
from verderer.cli.screen.printing import (
    Format,
    OutputOption,
    print_document,
    print_facts,
    print_table,
)
from verderer.cli.screen.tables import Cell, Column
from verderer.cli.screen.terminal import clean, look, say
from verderer.cli.screen.words import ago, quantity, size

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
    _print_detail(found)


@group.command()
def disable(cluster: ClusterArgument) -> None:
    """Hand a cluster no more work; what runs there goes on (platform admins)."""
    _set(cluster, "disable", doing="Disabling")


@group.command()
def enable(cluster: ClusterArgument) -> None:
    """Let a cluster have work again (platform admins)."""
    _set(cluster, "enable", doing="Enabling")


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


def _print_detail(found: ClusterDetailOut) -> None:
    now = datetime.now(UTC)
    print_facts(
        [
            ("cluster", found.id),
            ("kind", found.kind),
            ("state", Cell(*look(found.state))),
            ("heard", ago(found.seen_at, now)),
            ("agent", found.agent_version),
        ]
    )
    print()
    print_table(
        [
            Column(title="RESOURCE", shrinks=True),
            Column(title="FREE", right=True),
            Column(title="RESERVED", right=True, rank=1),
            Column(title="TOTAL", right=True),
            Column(title="LARGEST NODE", right=True, rank=2),
        ],
        [
            [
                c.resource,
                *(quantity(v, c.resource) for v in (c.free, c.reserved, c.total, c.largest)),
            ]
            for c in found.capacity
        ],
        empty="No node of it has reported anything yet.",
    )
    print()
    print_table(
        [
            Column(title="NODE", shrinks=True),
            Column(title="STATE"),
            Column(title="CAPACITY", shrinks=True, rank=1),
            Column(title="CPU", right=True, rank=2),
            Column(title="MEMORY FREE", right=True, rank=3),
        ],
        [
            [
                node.name,
                Cell(*look("ready" if node.ready else "not ready")),
                ", ".join(f"{quantity(v, k)} {k}" for k, v in node.capacity.items()),
                "" if node.cpu_load is None else f"{node.cpu_load:.0%}",
                size(node.memory_free),
            ]
            for node in found.node_list
        ],
        empty="No nodes.",
    )
    if not found.live:
        return
    print()
    print_table(
        [
            Column(title="RUN"),
            Column(title="STEP", shrinks=True),
            Column(title="STATE"),
            Column(title="NODE", shrinks=True, rank=1),
            Column(title="SINCE", right=True, rank=2),
        ],
        [
            [one.run, one.step, Cell(*look(one.state)), one.node, ago(one.started_at, now)]
            for one in found.live
        ],
        empty="",
    )
