"""What people and their programs do with the platform: runs, pipelines and clusters."""

from __future__ import annotations

from litestar import Router
from litestar.types import ControllerRouterHandler

from verderer.api import clusters, pipelines
from verderer.api.governance import approvals, groups, teams
from verderer.api.runs.routes import ROUTES as RUNS


def workload_handlers() -> list[ControllerRouterHandler]:
    """To be mounted at the root; `app.state.submitter` must be there before the first request."""
    own = (*RUNS, *pipelines.ROUTES, *clusters.ROUTES)
    return [Router("/api/v1", route_handlers=list(own))]


def governance_handlers() -> list[ControllerRouterHandler]:
    """Who may run where and how much; to be mounted at the root."""
    own = (*groups.ROUTES, *approvals.ROUTES, *teams.ROUTES)
    return [Router("/api/v1", route_handlers=list(own))]
