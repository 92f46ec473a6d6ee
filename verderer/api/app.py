"""The application: our routes under `/api/v1`, whatever others bring, and one gate before all."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from litestar import Litestar, Router
from litestar.datastructures import State
from litestar.di import Provide
from litestar.exceptions import HTTPException
from litestar.middleware import DefineMiddleware
from litestar.types import ControllerRouterHandler

from verderer.api import docs, health, me, projects, tokens, users
from verderer.api.agents import enrolment
from verderer.api.auth import provide_actor, provide_context
from verderer.api.errors import answer_error
from verderer.api.gate import Gate, check_routes
from verderer.api.headers import add_headers
from verderer.core.errors import VerdererError
from verderer.objects.grants import Grants
from verderer.objects.store import ObjectStore
from verderer.usecases.context import Context

MAX_BODY = 4 * 1024 * 1024
"""Bytes; a route that takes more says so with `request_max_body_size`."""

Hook = Callable[..., Any]


def api_router(handlers: Sequence[ControllerRouterHandler] = ()) -> Router:
    """Everything under `/api/v1`: accounts, projects, users, tokens, and `handlers`."""
    own = (*me.ROUTES, *tokens.ROUTES, *projects.ROUTES, *users.ROUTES, *enrolment.ROUTES)
    return Router("/api/v1", route_handlers=[*own, docs.openapi_document, *handlers])


def build_app(
    *,
    context: Context,
    objects: ObjectStore,
    grants: Grants,
    extra_handlers: Sequence[ControllerRouterHandler] = (),
    on_startup: Sequence[Hook] = (),
    on_shutdown: Sequence[Hook] = (),
) -> Litestar:
    """Put the application together, denied by default.

    `extra_handlers` are the other rooms' routers and handlers; each of their routes says who may
    use it, as `api.gate` explains. Handlers get `actor` and `context` by naming them.

    Raises:
        ValueError: a route says neither who may use it nor why everybody may.
    """
    app = Litestar(
        route_handlers=[api_router(), *health.ROUTES, *extra_handlers],
        middleware=[DefineMiddleware(Gate, context=context)],
        dependencies={"actor": Provide(provide_actor), "context": Provide(provide_context)},
        exception_handlers={
            VerdererError: answer_error,
            HTTPException: answer_error,
            Exception: answer_error,
        },
        before_send=[add_headers],
        request_max_body_size=MAX_BODY,
        openapi_config=docs.openapi_config(),
        state=State({"context": context, "objects": objects, "grants": grants}),
        on_startup=list(on_startup),
        on_shutdown=list(on_shutdown),
        logging_config=None,
        debug=False,
    )
    check_routes(app)
    return app
