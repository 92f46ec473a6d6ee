"""Clusters: what they have, what is promised, who is silent."""

from __future__ import annotations

from dataclasses import dataclass

from litestar import Response, get, post
from litestar.params import FromPath
from litestar.response import Redirect, Stream

from verderer.core.access import Action
from verderer.core.errors import Invalid, NotFound, Refusal
from verderer.core.model.cluster import ClusterKind
from verderer.store.views.clusters import ClusterDetail, ClusterRow, get_cluster, list_clusters
from verderer.usecases.clusters import set_cluster_enabled
from verderer.usecases.enrolment.declare_lost import declare_lost
from verderer.usecases.enrolment.expel import retire_cluster, revoke_agent
from verderer.usecases.enrolment.invite import invite_agent, join_command
from verderer.web import live, visitor
from verderer.web.errors import status_of
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


@dataclass(frozen=True, slots=True, kw_only=True)
class AddPage:
    """Context of `cluster_add.html`."""

    id: str = ""
    kind: str = "kubernetes"
    trouble: str = ""
    command: str = ""
    """Shown this once, since its token is."""
    detail: ClusterDetail | None = None
    live_url: str = ""
    kinds: tuple[str, ...] = tuple(kind.value for kind in ClusterKind)


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


@get("/clusters/add", opt=asks(Action.CLUSTER_MANAGE))
async def add_page(request: HttpRequest, renderer: RendererArg) -> Response[str]:
    """Ask which cluster."""
    return renderer.page(request, "cluster_add.html", AddPage())


@post("/clusters/add", opt=asks(Action.CLUSTER_MANAGE), status_code=200)
async def add_cluster(
    request: HttpRequest, parts: PartsArg, renderer: RendererArg
) -> Response[str]:
    """Show the command that lets its agent join, once; below it the page follows the agent."""
    here = visitor.of(request)
    form = await request.form()
    cluster_id, kind = str(form.get("id", "")).strip(), str(form.get("kind", ""))
    try:
        made = await invite_agent(parts.ctx, here.who, cluster_id, kind)
    except Refusal as e:
        problems = e.problems if isinstance(e, Invalid) else ()
        again = AddPage(
            id=cluster_id[:63],
            kind=kind[:20] or "kubernetes",
            trouble=problems[0].message if problems else e.message,
        )
        return renderer.page(request, "cluster_add.html", again, status=status_of(e))
    async with parts.ctx.db.reading() as tx:
        detail = await get_cluster(tx, here.who.scope, made.cluster_id)
    page = AddPage(
        id=made.cluster_id,
        kind=made.kind,
        command=join_command(parts.ctx.public_url, made),
        detail=detail,
        live_url=f"/clusters/{made.cluster_id}/live",
    )
    return renderer.page(request, "cluster_add.html", page)


@post("/clusters/{cluster_id:str}/change", opt=asks(Action.CLUSTER_MANAGE), status_code=200)
async def change_cluster(
    request: HttpRequest, parts: PartsArg, cluster_id: FromPath[str]
) -> Response[str]:
    """Take it out of use or back in, lock its agent out, or remove it for good."""
    who = visitor.of(request).who
    form = await request.form()
    match form.get("what"):
        case "disable":
            await set_cluster_enabled(parts.ctx, who, cluster_id, enabled=False)
        case "enable":
            await set_cluster_enabled(parts.ctx, who, cluster_id, enabled=True)
        case "revoke":
            await revoke_agent(parts.ctx, who, cluster_id)
        case "lost" | "remove" if str(form.get("typed", "")).strip() != cluster_id:
            raise Invalid("type the cluster's id, so that it is no slip")
        case "lost":
            await declare_lost(parts.ctx, who, cluster_id)
        case "remove":
            await retire_cluster(parts.ctx, who, cluster_id)
            return Redirect("/clusters", status_code=303)
        case _:
            raise Invalid("there is no such change")
    return Redirect(f"/clusters/{cluster_id}", status_code=303)


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


ROUTES = (
    clusters_page,
    clusters_news,
    add_page,
    add_cluster,
    cluster_page,
    cluster_news,
    change_cluster,
)
