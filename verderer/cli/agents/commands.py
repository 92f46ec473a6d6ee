"""`agent`, `agent join`, `agent install`: the process beside a cluster, and how it gets there."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from verderer.cli.playing import Config, DataDir, play

if TYPE_CHECKING:
    from verderer.settings import Settings

group = typer.Typer(
    invoke_without_command=True, help="Run one cluster's work, beside it; join, install."
)
Server = Annotated[str, typer.Option("--server", help="Address of the control plane.")]
Token = Annotated[
    str,
    typer.Option(
        "--token",
        help="Join token, from Clusters → Add. Other users see a command line, and it works once: "
        "VERDERER_AGENT_JOIN_TOKEN keeps it from them.",
        envvar="VERDERER_AGENT_JOIN_TOKEN",
        show_envvar=False,
    ),
]
CaFile = Annotated[
    Path | None,
    typer.Option(
        "--ca-file",
        help="PEM file of the authority that signed its certificate. (default: the system's)",
        show_default=False,
    ),
]


@group.callback()
def agent(ctx: typer.Context, config: Config = None, data_dir: DataDir = None) -> None:
    """Run one cluster's work, beside it; dials out and needs no database."""
    if ctx.invoked_subcommand:
        return

    def run(settings: Settings) -> None:
        from verderer.cli.agents.serving import serve_cluster

        serve_cluster(settings)

    uses = ("verderer.cli.agents.local", "verderer.cli.agents.serving")
    play("agent", config, data_dir, run, uses=uses, central=False)


@group.command()
def join(
    server: Server,
    token: Token,
    kind: Annotated[
        str | None,
        typer.Option("--kind", help="slurm, kubernetes or local. (default: the setting)"),
    ] = None,
    ca_file: CaFile = None,
    again: Annotated[
        bool, typer.Option("--again", help="Although this agent has joined already.")
    ] = False,
    config: Config = None,
    data_dir: DataDir = None,
) -> None:
    """Let the agent of this data folder join a cluster, with a token that works once.

    It makes a key of its own, which never leaves this machine. Then start it: `verderer agent`.
    """
    import asyncio

    from verderer.cli.agents.identity import join_now
    from verderer.cli.agents.settings_file import keep_settings
    from verderer.cli.configuration import load
    from verderer.cli.data_folder import make_data_folder
    from verderer.cli.screen.terminal import Tone, clean, say

    flags = {
        "data_dir": data_dir,
        "agent.server_url": server,
        "agent.kind": kind,
        "agent.ca_file": ca_file,
    }
    settings = load(config=config, flags=flags)
    make_data_folder(settings)
    identity = asyncio.run(join_now(settings, token.strip(), again=again))
    say(f"Joined as cluster {clean(identity.cluster)}.", Tone.GOOD)
    for line in keep_settings(settings, identity.cluster, config):
        say(line)


@group.command()
def install(
    server: Server,
    token: Token,
    kubernetes: Annotated[
        bool, typer.Option("--kubernetes", help="Manifests for kubectl apply --server-side.")
    ] = False,
    slurm: Annotated[
        bool, typer.Option("--slurm", help="A systemd unit and how to put it in place.")
    ] = False,
    cluster: Annotated[
        str, typer.Option("--cluster", help="The cluster's id, for whoever reads the manifests.")
    ] = "",
    image: Annotated[
        str, typer.Option("--image", help="The agent's image. (default: that of this release)")
    ] = "",
    ca_file: CaFile = None,
    user: Annotated[
        str, typer.Option("--user", help="With --slurm: the user that submits the jobs.")
    ] = "verderer",
    shared_dir: Annotated[
        str,
        typer.Option("--shared-dir", help="With --slurm: a folder that all nodes see."),
    ] = "/shared/verderer",
) -> None:
    """Print what installs the agent beside a cluster. Nothing is changed here."""
    from verderer.cli.agents.install import Wanted, kubernetes_manifests, slurm_script
    from verderer.core.errors import Invalid

    if kubernetes == slurm:
        raise Invalid("say which: --kubernetes or --slurm")
    if kubernetes:
        wanted = Wanted(server, token.strip(), cluster=cluster, image=image, ca_file=ca_file)
        print(kubernetes_manifests(wanted), end="")
    else:
        script = slurm_script(
            server, token.strip(), user=user, shared_dir=shared_dir, ca_file=ca_file
        )
        print(script, end="")
