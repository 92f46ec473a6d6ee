"""Clusters: what they have, what is promised, who is silent."""

from __future__ import annotations

from dataclasses import dataclass

from litestar import Response, get
from litestar.params import FromPath
from litestar.response import Stream

from verderer.core.access import Action
from verderer.core.errors import NotFound
from verderer.store.views.clusters import ClusterDetail, ClusterRow, get_cluster, list_clusters
from verderer.web import live, visitor
from verderer.web.gate import asks
from verderer.web.parts import PartsArg
from verderer.web.render import RendererArg
from verderer.web.visitor import HttpRequest


@dataclass(frozen=True, slots=True, kw_only=True)
class ClustersPage:
    """Context of `clusters.html`."""

    clusters: tuple[ClusterRow, ...]
    live_url: str = "/clusters/live"


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterPage:
    """Context of `cluster.html`."""

    detail: ClusterDetail
    live_url: str


@get("/clusters", opt=asks(Action.CLUSTER_READ))
async def clusters_page(
    request: HttpRequest, parts: PartsArg, renderer: RendererArg
) -> Response[str]:
    """All of them."""
    async with parts.ctx.db.reading() as tx:
        found = await list_clusters(tx, visitor.of(request).who.scope)
    return renderer.page(request, "clusters.html", ClustersPage(clusters=tuple(found)))


@get("/clusters/live", opt=asks(Action.CLUSTER_READ))
async def clusters_news(parts: PartsArg) -> Stream:
    """Says when to look again."""
    return live.stream(parts, changed=["clusters"])


@get("/clusters/{cluster_id:str}", opt=asks(Action.CLUSTER_READ))
async def cluster_page(
    request: HttpRequest, parts: PartsArg, renderer: RendererArg, cluster_id: FromPath[str]
) -> Response[str]:
    """One of them with its nodes and what the reader runs there."""
    async with parts.ctx.db.reading() as tx:
        detail = await get_cluster(tx, visitor.of(request).who.scope, cluster_id)
    if detail is None:
        raise NotFound("there is no such cluster")
    page = ClusterPage(detail=detail, live_url=f"/clusters/{cluster_id}/live")
    return renderer.page(request, "cluster.html", page)


@get("/clusters/{cluster_id:str}/live", opt=asks(Action.CLUSTER_READ))
async def cluster_news(request: HttpRequest, parts: PartsArg, cluster_id: FromPath[str]) -> Stream:
    """Says when its work or its nodes changed."""
    async with parts.ctx.db.reading() as tx:
        detail = await get_cluster(tx, visitor.of(request).who.scope, cluster_id, nodes=1, live=1)
    if detail is None:
        raise NotFound("there is no such cluster")
    return live.stream(parts, changed=[f"cluster:{detail.cluster.id}"])


ROUTES = (clusters_page, clusters_news, cluster_page, cluster_news)
