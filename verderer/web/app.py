"""Puts the console together as one router for the application to mount."""

from __future__ import annotations

from litestar import Router
from litestar.di import Provide
from litestar.types import ControllerRouterHandler

from verderer.objects.log_chunks import ChunkSource
from verderer.objects.store import ObjectStore
from verderer.usecases.context import Context
from verderer.usecases.submit_run import Submitter
from verderer.web import errors
from verderer.web.gate import make_gate
from verderer.web.language import Catalogues
from verderer.web.pages import (
    clusters,
    door,
    files,
    logs,
    metrics,
    new_run,
    overview,
    projects,
    run,
    run_tabs,
    runs,
    settings,
    tracked,
    users,
)
from verderer.web.pages.governance import approvals, groups, teams
from verderer.web.parts import Parts
from verderer.web.render import Renderer
from verderer.web.static import Assets

MAX_FORM = 12 * 1024 * 1024
"""Bytes; documents of up to 10 MB are refused by what reads them, in words."""

_PAGES = (
    door,
    overview,
    runs,
    new_run,
    run,
    run_tabs,
    metrics,
    tracked,
    logs,
    clusters,
    projects,
    groups,
    approvals,
    teams,
    settings,
    users,
    files,
)


def web_handlers(
    *, context: Context, submitter: Submitter, objects: ObjectStore, version: str
) -> list[ControllerRouterHandler]:
    """Every page, to be mounted at the root of the application.

    Raises:
        Fault: the browser's libraries are missing from this installation.
    """
    parts = Parts(
        ctx=context,
        submitter=submitter,
        objects=objects,
        logs=ChunkSource(objects),
        assets=Assets.load(),
        catalogues=Catalogues.load(),
        version=version,
    )
    renderer = Renderer(parts)
    router = Router(
        "/",
        route_handlers=[route for page in _PAGES for route in page.ROUTES],
        guards=[make_gate(parts)],
        dependencies={
            "parts": Provide(lambda: parts, sync_to_thread=False),
            "renderer": Provide(lambda: renderer, sync_to_thread=False),
        },
        exception_handlers=errors.make_handlers(parts, renderer),
        include_in_schema=False,
        request_max_body_size=MAX_FORM,
    )
    return [router]
