"""All tracking endpoints, to be mounted beside the rest of the API."""

from __future__ import annotations

from litestar.types import ControllerRouterHandler

from verderer.api.mlflow import artifacts, experiments, metrics, models, runs, server


def mlflow_handlers() -> list[ControllerRouterHandler]:
    """The handlers; each says who may use it, as `api.gate` wants it.

    They read `state.context` and `state.objects` of the application.
    """
    return [
        *server.ROUTES,
        *experiments.ROUTES,
        *runs.ROUTES,
        *metrics.ROUTES,
        *models.ROUTES,
        *artifacts.ROUTES,
    ]
