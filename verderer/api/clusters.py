"""/api/v1/clusters: what there is to run on, and taking a cluster out of use."""

from __future__ import annotations

from typing import Annotated, Any

from litestar import Request, Response, get, post
from litestar.params import PathParameter

from verderer.api.auth import ActorArg, ContextArg
from verderer.api.etags import tagged
from verderer.api.paging import Page
from verderer.api.runs.documents import quantities
from verderer.core import access
from verderer.core.access import Action
from verderer.core.errors import NotFound
from verderer.core.model.actor import Actor
from verderer.core.model.ids import run_id_text
from verderer.core.model.resources import format_quantity
from verderer.store.views.clusters import (
    Capacity,
    ClusterRow,
    LiveRow,
    NodeRow,
    get_cluster,
    list_clusters,
)
from verderer.usecases.clusters import set_cluster_enabled
from verderer.usecases.context import Context
from verderer.wire.users import CapacityOut, ClusterDetailOut, ClusterOut, LiveOut, NodeOut

ClusterArg = Annotated[str, PathParameter(max_length=63, description="The cluster's id.")]
_READ = {"action": Action.CLUSTER_READ}
_MANAGE = {"action": Action.CLUSTER_MANAGE}


@get("/clusters", opt=_READ, tags=["clusters"], summary="List clusters")
async def clusters(context: ContextArg, actor: ActorArg) -> Page[ClusterOut]:
    """Every cluster with what it can give; the list has one page."""
    async with context.db.reading() as tx:
        rows = await list_clusters(tx, actor.scope)
    return Page([ClusterOut(**_cluster(row)) for row in rows])


@get("/clusters/{cluster:str}", opt=_READ, tags=["clusters"], summary="Read a cluster")
async def one(
    request: Request[Any, Any, Any], context: ContextArg, actor: ActorArg, cluster: ClusterArg
) -> Response[ClusterDetailOut]:
    """A cluster with its nodes, and those of the caller's own attempts that are under way there."""
    return tagged(request, await _detail(context, actor, cluster))


@post(
    "/clusters/{cluster:str}/disable",
    opt=_MANAGE,
    tags=["clusters"],
    summary="Take a cluster out of use",
    status_code=200,
)
async def disable(context: ContextArg, actor: ActorArg, cluster: ClusterArg) -> ClusterDetailOut:
    """Hand the cluster no more work; what runs there goes on. Safe to repeat."""
    await set_cluster_enabled(context, actor, cluster, enabled=False)
    return await _detail(context, actor, cluster)


@post(
    "/clusters/{cluster:str}/enable",
    opt=_MANAGE,
    tags=["clusters"],
    summary="Use a cluster again",
    status_code=200,
)
async def enable(context: ContextArg, actor: ActorArg, cluster: ClusterArg) -> ClusterDetailOut:
    """Let the cluster have work again. Safe to repeat."""
    await set_cluster_enabled(context, actor, cluster, enabled=True)
    return await _detail(context, actor, cluster)


async def _detail(context: Context, actor: Actor, cluster: str) -> ClusterDetailOut:
    access.require(actor, Action.CLUSTER_READ)
    async with context.db.reading() as tx:
        found = await get_cluster(tx, actor.scope, cluster)
    if found is None:
        raise NotFound("no such cluster")
    return ClusterDetailOut(
        **_cluster(found.cluster),
        node_list=[_node(row) for row in found.nodes],
        live=[_live(row) for row in found.live],
    )


def state_of(row: ClusterRow) -> str:
    """`online`, `offline`, `disabled`, or `never` when its agent has not called yet."""
    if not row.enabled:
        return "disabled"
    if row.seen_at is None:
        return "never"
    return "online" if row.online else "offline"


def _cluster(row: ClusterRow) -> dict[str, Any]:
    return {
        "id": row.cluster_id,
        "kind": row.kind,
        "state": state_of(row),
        "enabled": row.enabled,
        "seen_at": row.seen_at,
        "silent_s": row.silent_s,
        "agent_version": row.agent_version,
        "nodes": row.nodes,
        "ready": row.ready,
        "capacity": [_capacity(one) for one in row.capacity],
        "created_at": row.created_at,
    }


def _capacity(one: Capacity) -> CapacityOut:
    def amount(value: int) -> str:
        return format_quantity(value, resource=one.resource)

    return CapacityOut(
        resource=one.resource,
        total=amount(one.allocatable),
        largest=amount(one.largest),
        reserved=amount(one.reserved),
        free=amount(max(0, one.allocatable - one.reserved)),
    )


def _node(row: NodeRow) -> NodeOut:
    return NodeOut(
        name=row.name,
        ready=row.ready,
        capacity=quantities(row.allocatable),
        labels=dict(row.labels),
        cpu_load=row.cpu_load,
        memory_free=row.memory_free,
        reported_at=row.reported_at,
    )


def _live(row: LiveRow) -> LiveOut:
    return LiveOut(
        run=run_id_text(row.run_id),
        name=row.run,
        project=row.project,
        step=row.step,
        attempt=row.number,
        state=row.state,
        node=row.node,
        started_at=row.started_at,
    )


ROUTES = (clusters, one, disable, enable)
