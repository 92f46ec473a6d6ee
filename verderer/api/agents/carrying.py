"""Tickets for the carriers of steps, and the addresses that they open (`wire.carry`)."""

from __future__ import annotations

from typing import Any

from litestar import asgi
from litestar.types import Receive, Scope, Send

from verderer.api.wire_route import Reply, WireRoute, wire_route
from verderer.core.access import Action
from verderer.core.errors import Invalid
from verderer.core.model.actor import Actor
from verderer.usecases.agents.carry_files import MAX_KEYS, issue, opened
from verderer.wire import agent as wire
from verderer.wire.carry import CarryGrantRequest, CarryRequest, CarryTicket

GRANT_S = 900.0
_LIMIT = 4 * 1024 * 1024
_PATH = "/api/v1/carry/grants"


async def _carry(state: Any, actor: Actor, document: CarryRequest) -> CarryTicket:
    ticket = await issue(
        state.context,
        actor,
        epoch=document.epoch,
        attempt=document.attempt,
        reads=document.reads,
        writes=document.writes,
    )
    return CarryTicket(ticket=ticket)


class _Grants(WireRoute[CarryGrantRequest, wire.GrantResponse]):
    async def reply(self, scope: Scope, document: CarryGrantRequest) -> Reply[wire.GrantResponse]:
        """Addresses of what the ticket opens, for a quarter of an hour."""
        return Reply(await _granted(scope["litestar_app"].state, document), 200)


async def _granted(state: Any, document: CarryGrantRequest) -> wire.GrantResponse:
    if document.method not in ("GET", "PUT"):
        raise Invalid("the method must be GET or PUT")
    writing = document.method == "PUT"
    sizes: dict[str, int] = {}
    keys = list(document.keys)
    if document.listing and not writing:
        sizes = await _list(state, document)
        keys = list(sizes)
    else:
        keys = await opened(state.context, document.ticket, writing=writing, keys=keys)
    urls = await state.grants.grant(keys, document.method, GRANT_S) if keys else {}
    return wire.GrantResponse(
        grants=[wire.Grant(key=k, url=url, size=sizes.get(k)) for k, url in urls.items()],
        ttl_s=GRANT_S,
    )


async def _list(state: Any, document: CarryGrantRequest) -> dict[str, int]:
    prefix = document.listing.rstrip("/") + "/"
    if not await opened(state.context, document.ticket, writing=False, keys=[f"{prefix}x"]):
        return {}
    found: dict[str, int] = {}
    after = None
    while page := await state.objects.list(prefix, after=after, limit=MAX_KEYS):
        found |= {one.key: one.size for one in page}
        after = page[-1].key
    return found


_ROUTE = _Grants(CarryGrantRequest, limit=_LIMIT)


@asgi(_PATH, opt={"public": "a ticket in the body opens it"}, name=_PATH, copy_scope=False)
async def carry_grants(scope: Scope, receive: Receive, send: Send) -> None:
    """Addresses for the carrier of a step."""
    await _ROUTE(scope, receive, send)


ROUTES = [
    wire_route("/api/v1/agent/carry", CarryRequest, _carry, action=Action.AGENT_SYNC, limit=_LIMIT),
    carry_grants,
]
