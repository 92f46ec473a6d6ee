"""Where the links lead that tracking clients print: to the run whose step they came from."""

from __future__ import annotations

from dataclasses import dataclass

from litestar import Response, get
from litestar.params import FromPath
from litestar.response import Redirect

from verderer.core.access import Action
from verderer.core.errors import NotFound
from verderer.core.model.ids import run_id_text
from verderer.store.views.tracked import runs
from verderer.web import visitor
from verderer.web.gate import asks
from verderer.web.parts import PartsArg
from verderer.web.render import RendererArg
from verderer.web.visitor import HttpRequest

_UID_LENGTH = 32


@dataclass(frozen=True, slots=True, kw_only=True)
class ForwardPage:
    """Context of `forward.html`."""


@get("/mlflow", opt=asks(Action.PROJECT_LIST))
async def forward(request: HttpRequest, renderer: RendererArg) -> Response[str]:
    """A client's link names its run behind `#`, which only the browser sees."""
    return renderer.page(request, "forward.html", ForwardPage())


@get("/tracked/{uid:str}", opt=asks(Action.TRACKING_READ))
async def tracked(request: HttpRequest, parts: PartsArg, uid: FromPath[str]) -> Redirect:
    """The metrics of the run whose step tracked `uid`."""
    here = visitor.of(request)
    well_formed = len(uid) == _UID_LENGTH and all(c in "0123456789abcdef" for c in uid)
    found = None
    if well_formed:
        async with parts.ctx.db.reading() as tx:
            found = await runs.get(tx, here.who.scope, uid)
    if found is None:
        raise NotFound("no such tracked run, or it is not yours to see")
    if found.run is None:
        return Redirect("/runs")
    return Redirect(f"/runs/{run_id_text(found.run)}/metrics")


ROUTES = (forward, tracked)
