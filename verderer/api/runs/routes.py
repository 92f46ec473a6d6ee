"""Every route of this folder, for the application to mount below `/api/v1`."""

from __future__ import annotations

from typing import Final

from litestar.types import ControllerRouterHandler

from verderer.api.runs import artifacts, change, logs, look, submit, watch, why

ROUTES: Final[tuple[ControllerRouterHandler, ...]] = (
    *look.ROUTES,
    *submit.ROUTES,
    *change.ROUTES,
    *why.ROUTES,
    *watch.ROUTES,
    *logs.ROUTES,
    *artifacts.ROUTES,
)
