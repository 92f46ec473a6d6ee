"""What handlers are given: the actor that the gate found, and the context."""

from __future__ import annotations

from typing import Any, cast

from litestar import Request
from litestar.di import NamedDependency
from litestar.params import SkipValidation
from litestar.types import Scope

from verderer.core.model.actor import Actor
from verderer.usecases.authenticate import refused
from verderer.usecases.context import Context

ActorArg = NamedDependency[SkipValidation[Actor]]
ContextArg = NamedDependency[SkipValidation[Context]]


def actor_of(scope: Scope) -> Actor:
    """Who asks; for plain ASGI handlers.

    Raises:
        NotAuthenticated: the route is public.
    """
    actor = scope.get("user")
    if not isinstance(actor, Actor):
        raise refused(given=False)
    return actor


def context_of(scope: Scope) -> Context:
    """The process's context; for plain ASGI handlers."""
    return cast("Context", scope["litestar_app"].state.context)


async def provide_actor(request: Request[Any, Any, Any], context: ContextArg) -> Actor:
    """Dependency `actor`."""
    # Litestar gives dependencies that do not know each other a task each: a sixth of the work of
    # a small request. Asking for the context makes it resolve the two one after the other.
    del context
    return actor_of(request.scope)


async def provide_context(request: Request[Any, Any, Any]) -> Context:
    """Dependency `context`."""
    return context_of(request.scope)
