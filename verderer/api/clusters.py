"""/api/v1/clusters: what there is to run on, and taking a cluster out of use."""

from __future__ import annotations

from datetime import timedelta
from typing import Annotated, Any

from litestar import Request, Response, delete, get, post
from litestar.params import JSONBody, PathParameter

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
    CheckRow,
    ClusterRow,
    LiveRow,
    NodeRow,
    get_cluster,
    list_clusters,
)
from verderer.usecases.clusters import set_cluster_enabled
from verderer.usecases.context import Context
from verderer.usecases.enrolment.declare_lost import declare_lost
from verderer.usecases.enrolment.expel import retire_cluster, revoke_agent
from verderer.usecases.enrolment.invite import invite_agent, join_command
from verderer.wire.users import (
    CapacityOut,
    CheckOut,
    ClusterDetailOut,
    ClusterIn,
    ClusterOut,
    InvitationOut,
    LiveOut,
    LostOut,
    NodeOut,
)

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


@post("/clusters", opt=_MANAGE, tags=["clusters"], summary="Add a cluster")
async def add(context: ContextArg, actor: ActorArg, data: JSONBody[ClusterIn]) -> InvitationOut:
    """Make the cluster if there is none, and a token with which its agent joins, once.

    409 when there is a cluster of that id and of another kind.
    """
    life = timedelta(minutes=data.minutes)
    made = await invite_agent(context, actor, data.id, data.kind, life=life)
    return InvitationOut(
        cluster=made.cluster_id,
        kind=made.kind,
        token=made.token,
        expires_at=made.expires_at,
        command=join_command(context.public_url, made),
    )


@delete(
    "/clusters/{cluster:str}/agent",
    opt=_MANAGE,
    tags=["clusters"],
    summary="Lock a cluster's agent out",
)
async def revoke(context: ContextArg, actor: ActorArg, cluster: ClusterArg) -> None:
    """Revoke what its agent shows, at once; what runs there goes on until it joins again."""
    await revoke_agent(context, actor, cluster)


@post(
    "/clusters/{cluster:str}/lost",
    opt=_MANAGE,
    tags=["clusters"],
    summary="Declare a cluster lost",
    status_code=200,
)
async def lost(context: ContextArg, actor: ActorArg, cluster: ClusterArg) -> LostOut:
    """End what is under way on a cluster that will not come back; retries start elsewhere.

    409 `cluster_heard` while its agent is heard.
    """
    return LostOut(attempts=await declare_lost(context, actor, cluster))


@delete("/clusters/{cluster:str}", opt=_MANAGE, tags=["clusters"], summary="Remove a cluster")
async def remove(context: ContextArg, actor: ActorArg, cluster: ClusterArg) -> None:
    """Take it out for good; its history stays. 409 `cluster_busy` while attempts are under way."""
    await retire_cluster(context, actor, cluster)


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
        checks=[_check(row) for row in found.checks],
    )


def _cluster(row: ClusterRow) -> dict[str, Any]:
    return {
        "id": row.cluster_id,
        "kind": row.kind,
        "state": row.state,
        "enabled": row.enabled,
        "seen_at": row.seen_at,
        "silent_s": row.silent_s,
        "agent_version": row.agent_version,
        "nodes": row.nodes,
        "ready": row.ready,
        "capacity": [_capacity(one) for one in row.capacity],
        "created_at": row.created_at,
    }


def _check(row: CheckRow) -> CheckOut:
    return CheckOut(
        name=row.name,
        level=row.level.value,
        required=row.required,
        message=row.message,
        remedy=row.remedy,
        checked_at=row.checked_at,
    )


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


ROUTES = (clusters, one, add, revoke, remove, lost, disable, enable)
