"""`resource-groups` and its verbs: clusters with a quota and rules, and who may use them."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Annotated, Any
from urllib.parse import quote

import typer

from verderer.cli.commands.parameters import pairs_of
from verderer.cli.commands.remote import API, ask
from verderer.cli.screen.printing import Format, OutputOption, print_document, print_table
from verderer.cli.screen.tables import Column
from verderer.cli.screen.terminal import Tone, clean, say

if TYPE_CHECKING:
    from verderer.wire.client import ApiClient
    from verderer.wire.governance import GroupDetailOut, GroupOut, PreviewOut

group = typer.Typer(invoke_without_command=True, help="List resource groups and manage them.")
Name = Annotated[str, typer.Argument(metavar="GROUP", help="The resource group's name.")]
Team = Annotated[str, typer.Argument(metavar="PROJECT_GROUP", help="The project group's name.")]
Title = Annotated[str | None, typer.Option("--title", help="For people.")]
Clusters = Annotated[
    list[str] | None,
    typer.Option("--cluster", help="One of its clusters; repeat it. `every` takes all of them."),
]
Labels = Annotated[
    list[str] | None,
    typer.Option("--label", help="KEY=VALUE that a run must have; repeat it. `none` clears."),
]
Quotas = Annotated[
    list[str] | None,
    typer.Option(
        "--quota", help="RESOURCE=AMOUNT, such as nvidia.com/gpu=8; repeat it. `none` clears."
    ),
]
OrderOption = Annotated[str | None, typer.Option("--order", help="fair or fifo.")]
Yes = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")]


@group.callback()
def resource_groups(ctx: typer.Context, output: OutputOption = Format.TABLE) -> None:
    """List resource groups with their quotas and use."""
    if ctx.invoked_subcommand:
        return
    from verderer.wire.governance import GroupOut
    from verderer.wire.users import Listing

    async def work(client: ApiClient) -> list[GroupOut]:
        return (await client.get(f"{API}/resource-groups", Listing[GroupOut])).items

    found = ask(work, doing="Listing resource groups")
    if output is not Format.TABLE:
        print_document(found, output)
        return
    columns = [
        Column(title="GROUP", shrinks=True, least=16),
        Column(title="CLUSTERS", shrinks=True, rank=1),
        Column(title="RESERVED / QUOTA", shrinks=True, least=24),
        Column(title="LABELS", shrinks=True, rank=2),
    ]
    rows = [
        [one.name, _clusters(one), _use(one), ", ".join(f"{k}={v}" for k, v in one.labels.items())]
        for one in found
    ]
    print_table(columns, rows, empty="There are no resource groups.")


@group.command()
def show(name: Name, output: OutputOption = Format.TABLE) -> None:
    """Show a resource group: clusters, quotas, use, and who may use it."""
    found = ask(lambda client: _read(client, name), doing="Reading the resource group")
    if output is not Format.TABLE:
        print_document(found, output)
        return
    say(f"{clean(found.name)}  {clean(found.title)}".rstrip(), Tone.GOOD)
    for cluster, online in found.clusters.items():
        say(f"  {clean(cluster)}" + ("" if online else "  offline"))
    if found.labels:
        say("takes runs with " + ", ".join(f"{k}: {v}" for k, v in found.labels.items()))
    say(f"order: {found.order}")
    columns = [
        Column(title="RESOURCE", shrinks=True),
        Column(title="RESERVED", right=True),
        Column(title="QUOTA", right=True),
        Column(title="HEALTHY", right=True),
    ]
    rows: list[list[Any]] = [
        [a.resource, a.reserved, _quota(a.quota, a.target), a.healthy] for a in found.accounts
    ]
    print_table(columns, rows, empty="Its clusters have nothing.")
    granted = [
        [g.project_group, g.kind, "" if g.expires_at is None else f"{g.expires_at:%Y-%m-%d %H:%M}"]
        for g in found.grants
    ]
    grant_columns = [Column(title="PROJECT GROUP"), Column(title="GRANT"), Column(title="UNTIL")]
    print_table(grant_columns, granted, empty="No project group of yours may use it.")


@group.command()
def create(
    name: Name,
    title: Title = None,
    clusters: Clusters = None,
    labels: Labels = None,
    quota: Quotas = None,
    order: OrderOption = None,
) -> None:
    """Make a resource group (platform admins); grant it to let anybody use it."""
    body = _changed({}, title, clusters, labels, quota, order)

    async def work(client: ApiClient) -> GroupDetailOut:
        from verderer.wire.governance import GroupDetailOut

        return await client.post(f"{API}/resource-groups", {"name": name, **body}, GroupDetailOut)

    ask(work, doing="Making the resource group")
    say(f"Resource group {clean(name)} is made.", Tone.GOOD)
    say(f"Let a project group use it: verderer resource-groups grant {clean(name)} …", Tone.DIM)


@group.command("set")
def change(
    name: Name,
    title: Title = None,
    clusters: Clusters = None,
    labels: Labels = None,
    quota: Quotas = None,
    order: OrderOption = None,
    yes: Yes = False,
) -> None:
    """Change what is named and leave the rest, once you have seen what that does."""
    found = ask(lambda client: _read(client, name), doing="Reading the resource group")
    body = _changed(_body(found), title, clusters, labels, quota, order)

    async def look(client: ApiClient) -> PreviewOut:
        from verderer.wire.governance import PreviewOut

        return await client.post(f"{_path(name)}/preview", body, PreviewOut)

    _tell(ask(look, doing="Looking at the effect"))
    if not (yes or typer.confirm("Change it?", err=True)):
        raise typer.Exit(1)

    async def work(client: ApiClient) -> None:
        from verderer.wire.governance import GroupDetailOut

        await client.put(f"{_path(name)}?version={found.version}", body, GroupDetailOut)

    ask(work, doing="Changing the resource group")
    say(f"Resource group {clean(name)} is changed.", Tone.GOOD)


@group.command()
def retire(name: Name, yes: Yes = False) -> None:
    """Take a resource group out for good (platform admins)."""
    if not (yes or typer.confirm(f"Retire {clean(name)}?", err=True)):
        raise typer.Exit(1)
    ask(lambda client: client.delete(_path(name)), doing="Retiring the resource group")
    say(f"Resource group {clean(name)} is retired.")


@group.command()
def grant(
    name: Name,
    project_group: Team,
    default: Annotated[
        bool, typer.Option("--default", help="Where its runs go unless they name another.")
    ] = False,
    until: Annotated[
        datetime | None, typer.Option("--until", help="When it ends, in your time zone.")
    ] = None,
) -> None:
    """Let the projects of a group use a resource group (platform admins)."""
    body = {
        "kind": "default" if default else "optional",
        "expires_at": None if until is None else until.astimezone().isoformat(),
    }
    path = f"{_path(name)}/grants/{quote(project_group, safe='')}"

    async def work(client: ApiClient) -> None:
        from verderer.wire.governance import GroupDetailOut

        await client.put(path, body, GroupDetailOut)

    ask(work, doing="Granting")
    say(f"{clean(project_group)} may use {clean(name)}.", Tone.GOOD)


@group.command("take-back")
def take_back(name: Name, project_group: Team) -> None:
    """Take a grant back; what runs goes on (platform admins)."""
    path = f"{_path(name)}/grants/{quote(project_group, safe='')}"
    ask(lambda client: client.delete(path), doing="Taking the grant back")
    say(f"{clean(project_group)} may not use {clean(name)} any more.")


async def _read(client: ApiClient, name: str) -> GroupDetailOut:
    from verderer.wire.governance import GroupDetailOut

    return await client.get(_path(name), GroupDetailOut)


def _path(name: str) -> str:
    return f"{API}/resource-groups/{quote(name, safe='')}"


def _body(found: GroupDetailOut) -> dict[str, Any]:
    return {
        "title": found.title,
        "clusters": None if found.every_cluster else list(found.clusters),
        "labels": dict(found.labels),
        "order": found.order,
        "quota": {a.resource: a.target or a.quota for a in found.accounts if a.quota is not None},
    }


def _changed(
    body: dict[str, Any],
    title: str | None,
    clusters: list[str] | None,
    labels: list[str] | None,
    quota: list[str] | None,
    order: str | None,
) -> dict[str, Any]:
    if title is not None:
        body["title"] = title
    if clusters:
        body["clusters"] = None if clusters == ["every"] else clusters
    if labels:
        body["labels"] = {} if labels == ["none"] else pairs_of(labels, "--label")
    if quota:
        body["quota"] = {} if quota == ["none"] else pairs_of(quota, "--quota")
    if order is not None:
        body["order"] = order
    return body


def _tell(seen: PreviewOut) -> None:
    """What would happen, a line each."""
    for q in seen.quotas:
        line = f"{clean(q.resource)}: {q.before or 'unlimited'} → {q.after or 'unlimited'}"
        if q.sinks:
            line += f"; {q.reserved} are reserved, so it sinks as work ends, and stops none"
        say(line)
    for cluster, running in seen.leaving.items():
        say(f"{clean(cluster)} leaves; {running} attempts go on there until they end")
    for cluster in seen.joining:
        say(f"{clean(cluster)} joins")
    if seen.never:
        say(f"{seen.never} waiting steps could then never start", Tone.BAD)
    if seen.freed:
        say(f"{seen.freed} waiting steps that never could may then start", Tone.GOOD)


def _clusters(one: GroupOut) -> str:
    return "every" if one.every_cluster else ", ".join(one.clusters) or "none"


def _use(one: GroupOut) -> str:
    quotas = [a for a in one.accounts if a.quota is not None]
    shown = quotas or [a for a in one.accounts if a.reserved != "0"]
    return ", ".join(f"{a.resource} {a.reserved}/{a.quota or a.healthy}" for a in shown) or "-"


def _quota(quota: str | None, target: str | None) -> str:
    if quota is None:
        return "unlimited"
    return quota if target is None else f"{quota} → {target}"
