"""Runs the agent that the settings ask for."""

from __future__ import annotations

from typing import TYPE_CHECKING

import uvloop

from verderer.cli.settling import settled

if TYPE_CHECKING:
    from verderer.settings import Settings


def serve_cluster(settings: Settings) -> None:
    """Run a cluster's work: the local cluster's, or what `agent.kind` says.

    Raises:
        Refusal: the cluster is not set up here.
    """
    if settings.agent.kind == "slurm":
        from verderer.cli.agents.slurm import run as run_slurm

        raise SystemExit(uvloop.run(settled(run_slurm(settings))))
    if settings.agent.kind == "kubernetes":
        from verderer.cli.agents.kubernetes import run as run_kubernetes

        raise SystemExit(uvloop.run(settled(run_kubernetes(settings))))
    from verderer.cli.agents.local import run

    raise SystemExit(uvloop.run(settled(run(settings))))
