"""`/api/v1/agent/…`: the four requests of the agent protocol (`wire.agent`)."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

from litestar.types import Scope

from verderer.api.agents import carrying, translate
from verderer.api.auth import actor_of
from verderer.api.wire_route import Reply, WireRoute, mounted, wire_route
from verderer.core.access import Action
from verderer.core.errors import Invalid
from verderer.core.model.actor import Actor
from verderer.core.version import VERSION
from verderer.usecases.agents.agent_session import hello, receive_checks, receive_nodes
from verderer.usecases.agents.grant_objects import grantable
from verderer.usecases.agents.hand_out_orders import Orders, hand_out
from verderer.usecases.agents.receive_logs import receive_chunks
from verderer.usecases.agents.receive_report import receive_facts
from verderer.usecases.agents.receive_waits import receive_waits
from verderer.wire import agent as wire

HEARTBEAT_S = 10.0
MAX_WAIT_S = 30.0
GRANT_S = 900.0
MAX_KEYS = 1000
MAX_CHECKS = 100
_SMALL = 64 * 1024
_LARGE = 16 * 1024 * 1024


async def _hello(state: Any, actor: Actor, document: wire.Hello) -> wire.Welcome:
    if document.protocol < 1:
        raise Invalid(f"protocol {document.protocol} is not spoken here")
    epoch = await hello(
        state.context,
        actor,
        instance=document.instance[:100],
        version=document.version[:100],
        stops_within_s=document.stops_within_s,
    )
    return wire.Welcome(
        cluster=actor.name,
        epoch=epoch,
        heartbeat_s=HEARTBEAT_S,
        server_unix_ms=int(state.context.clock().timestamp() * 1000),
        version=VERSION,
        number=actor.id,
    )


class _Sync(WireRoute[wire.SyncRequest, wire.SyncResponse]):
    """The long poll; an agent that is locked out meanwhile hears it, and no orders."""

    async def reply(self, scope: Scope, document: wire.SyncRequest) -> Reply[wire.SyncResponse]:
        state, recheck = scope["litestar_app"].state, scope["state"]["recheck"]
        return Reply(await _sync(state, actor_of(scope), document, recheck), 200)


async def _sync(
    state: Any,
    actor: Actor,
    document: wire.SyncRequest,
    recheck: Callable[[], Awaitable[Actor]],
) -> wire.SyncResponse:
    """Answer at once when there is news, else when it comes or the wait is over."""
    ctx = state.context
    state.heartbeats.note(actor.id)
    deadline = asyncio.get_running_loop().time() + min(max(document.wait_s, 0.0), MAX_WAIT_S)
    with ctx.wakeups.listening(f"cluster:{actor.id}") as news:
        while True:
            news.clear()
            found = await hand_out(ctx, actor, epoch=document.epoch, since=document.since)
            left = deadline - asyncio.get_running_loop().time()
            if found.orders or found.revision != document.since or left <= 0:
                return _answer(document.epoch, found)
            try:
                async with asyncio.timeout(left):
                    await news.wait()
            except TimeoutError:
                pass
            await recheck()
            state.heartbeats.note(actor.id)


def _answer(epoch: int, found: Orders) -> wire.SyncResponse:
    return wire.SyncResponse(
        epoch=epoch,
        revision=found.revision,
        full=found.full,
        lease_s=max(0.0, found.lease_s),
        orders=[translate.order(order) for order in found.orders],
    )


async def _report(state: Any, actor: Actor, document: wire.Report) -> wire.ReportAck:
    ctx, epoch = state.context, document.epoch
    state.heartbeats.note(actor.id)
    if document.nodes is not None:
        nodes = [translate.node(one) for one in document.nodes]
        await receive_nodes(ctx, actor, epoch=epoch, nodes=nodes)
    if document.checks is not None:
        found = [translate.check(one) for one in document.checks[:MAX_CHECKS]]
        await receive_checks(ctx, actor, epoch=epoch, found=found)
    if document.logs:
        # Before the ends: whoever sees a step over finds its log complete.
        chunks = [translate.chunk(one) for one in document.logs]
        await receive_chunks(ctx, actor, epoch=epoch, chunks=chunks)
    refused = {}
    if document.attempts:
        facts = [translate.fact(one) for one in document.attempts]
        refused = await receive_facts(ctx, actor, epoch=epoch, facts=facts)
    if document.waits:
        told = (translate.wait(fact) for fact in document.waits)
        await receive_waits(ctx, actor, epoch=epoch, told=dict(one for one in told if one))
    return wire.ReportAck(
        epoch=epoch,
        refused=[wire.Refused(key=str(key), reason=why) for key, why in refused.items()],
    )


async def _grants(state: Any, actor: Actor, document: wire.GrantRequest) -> wire.GrantResponse:
    if document.method not in ("GET", "PUT"):
        raise Invalid("the method must be GET or PUT")
    if len(document.keys) > MAX_KEYS:
        raise Invalid(f"at most {MAX_KEYS} keys in one request")
    writing = document.method == "PUT"
    keys = list(document.keys)
    sizes: dict[str, int] = {}
    if document.listing and not writing:
        sizes = await _list(state, actor, document)
        keys = list(sizes)
    else:
        keys = await grantable(
            state.context, actor, epoch=document.epoch, writing=writing, keys=keys
        )
    urls = await state.grants.grant(keys, document.method, GRANT_S) if keys else {}
    return wire.GrantResponse(
        grants=[wire.Grant(key=k, url=url, size=sizes.get(k)) for k, url in urls.items()],
        ttl_s=GRANT_S,
    )


async def _list(state: Any, actor: Actor, document: wire.GrantRequest) -> dict[str, int]:
    """Everything below a folder that the actor may read, with its size."""
    prefix = document.listing.rstrip("/") + "/"
    probe = prefix + "x"  # a name below the folder has the folder's owner
    if not await grantable(state.context, actor, epoch=document.epoch, writing=False, keys=[probe]):
        return {}
    found: dict[str, int] = {}
    after = None
    while page := await state.objects.list(prefix, after=after, limit=MAX_KEYS):
        found |= {one.key: one.size for one in page}
        after = page[-1].key
    return found


_SYNC = Action.AGENT_SYNC

ROUTES = [
    wire_route("/api/v1/agent/hello", wire.Hello, _hello, action=_SYNC, limit=_SMALL),
    mounted("/api/v1/agent/sync", _Sync(wire.SyncRequest, limit=_SMALL), action=_SYNC),
    wire_route("/api/v1/agent/report", wire.Report, _report, action=_SYNC, limit=_LARGE),
    wire_route("/api/v1/agent/grants", wire.GrantRequest, _grants, action=_SYNC, limit=_LARGE),
    *carrying.ROUTES,
]
