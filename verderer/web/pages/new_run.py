"""Write a pipeline, see at once what is wrong with it and what it would do, and submit it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from litestar import Response, get, post
from litestar.response import Redirect

from verderer.core.access import Action
from verderer.core.errors import Invalid, Problem, Refusal
from verderer.core.model.actor import Scope
from verderer.core.model.ids import run_id_text
from verderer.core.pipeline.expand import expand
from verderer.core.pipeline.spec import Parameter, Pipeline
from verderer.store.views.runs import get_run
from verderer.store.views.visible import ProjectRow, list_projects
from verderer.usecases.submit_run import Submission
from verderer.web import visitor
from verderer.web.errors import status_of
from verderer.web.gate import asks
from verderer.web.graph import COLLAPSE_ABOVE, Drawing, Item, arrange
from verderer.web.pages.overview import chosen
from verderer.web.pages.run import run_id
from verderer.web.parts import PartsArg
from verderer.web.render import RendererArg
from verderer.web.visitor import HttpRequest

_PREFIX: Final = "p."
EXAMPLE: Final = """\
metadata:
  name: hello
parameters:
  who: world
steps:
  - name: greet
    command: [echo, "Hello, ${{ params.who }}"]
  - name: count
    needs: [greet]
    script: |
      for i in 1 2 3; do
        echo "$VERDERER_PARAM_WHO $i"
        sleep 1
      done
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """What there is to say about a document."""

    problems: tuple[Problem, ...] = ()
    pipeline: Pipeline | None = None
    steps: int = 0
    drawing: Drawing | None = None
    parameters: tuple[Parameter, ...] = ()
    values: Mapping[str, str]
    message: str = ""

    @property
    def good(self) -> bool:
        """It can be submitted as it stands."""
        return self.pipeline is not None and not self.problems and not self.message


@dataclass(frozen=True, slots=True, kw_only=True)
class NewRunPage:
    """Context of `new_run.html`."""

    document: str
    verdict: Verdict
    projects: tuple[ProjectRow, ...]
    project: str
    cloned_from: str
    key: str
    """One submission, however often its button is pressed."""


@get("/runs/new", opt=asks(Action.RUN_SUBMIT))
async def new_run_page(
    request: HttpRequest, parts: PartsArg, renderer: RendererArg
) -> Response[str]:
    """An example, or the document of the run to clone."""
    here = visitor.of(request)
    source = request.query_params.get("clone", "")
    document, values, project = EXAMPLE, {}, ""
    async with parts.ctx.db.reading() as tx:
        projects = await list_projects(tx, here.who.scope)
        if source and (found := await get_run(tx, here.who.scope, run_id(source))):
            document, values, project = found.document, dict(found.parameters), found.project
    page = NewRunPage(
        document=document,
        verdict=judge(parts, document, values),
        projects=tuple(projects),
        project=project or chosen(here.project, projects) or _only(projects),
        cloned_from=source if values or project else "",
        key=f"web-{parts.ctx.chance():016x}",
    )
    return renderer.page(request, "new_run.html", page)


@post("/runs/new/check", opt=asks(Action.RUN_SUBMIT), status_code=200)
async def check_document(
    request: HttpRequest, parts: PartsArg, renderer: RendererArg
) -> Response[str]:
    """What is wrong with the document, or what it would do; nothing is kept."""
    page = await _sent(request, parts)
    return renderer.page(request, "new_run.html", page)


@post("/runs/new", opt=asks(Action.RUN_SUBMIT))
async def submit_run(request: HttpRequest, parts: PartsArg, renderer: RendererArg) -> Response[str]:
    """Submit it and go to its page."""
    page = await _sent(request, parts)
    form = await request.form()
    submission = Submission(
        document=page.document.encode(),
        parameters=page.verdict.values,
        project=page.project or None,
        idempotency_key=str(form.get("key", ""))[:200] or None,
        cloned_from=run_id(page.cloned_from) if page.cloned_from else 0,
    )
    try:
        made = await parts.submitter.submit(visitor.of(request).who, submission)
    except Refusal as e:
        problems = e.problems if isinstance(e, Invalid) else ()
        refused = Verdict(
            problems=problems,
            pipeline=page.verdict.pipeline,
            parameters=page.verdict.parameters,
            values=page.verdict.values,
            message="" if problems else e.message,
        )
        again = NewRunPage(
            document=page.document,
            verdict=refused,
            projects=page.projects,
            project=page.project,
            cloned_from=page.cloned_from,
            key=f"web-{parts.ctx.chance():016x}",
        )
        return renderer.page(request, "new_run.html", again, status=status_of(e))
    return Redirect(f"/runs/{run_id_text(made.run)}", status_code=303)


async def _sent(request: HttpRequest, parts: PartsArg) -> NewRunPage:
    form = await request.form()
    scope: Scope = visitor.of(request).who.scope
    document = str(form.get("document", "")).replace("\r\n", "\n")
    values = {
        name.removeprefix(_PREFIX): str(value)
        for name, value in form.items()
        if name.startswith(_PREFIX)
    }
    async with parts.ctx.db.reading() as tx:
        projects = await list_projects(tx, scope)
    return NewRunPage(
        document=document,
        verdict=judge(parts, document, values),
        projects=tuple(projects),
        project=str(form.get("project", ""))[:63],
        cloned_from=str(form.get("cloned_from", ""))[:13],
        key=str(form.get("key", ""))[:200],
    )


def judge(parts: PartsArg, document: str, given: Mapping[str, str]) -> Verdict:
    """Read a document with some values for its parameters."""
    try:
        _, pipeline = parts.ctx.pipelines.parse(document.encode("utf-8", "surrogatepass"))
    except Invalid as e:
        problems = e.problems or (Problem(message=e.message, hint=e.hint),)
        return Verdict(problems=tuple(problems), values={})
    values = {p.name: given.get(p.name, p.default or "") for p in pipeline.parameters}
    sent = {p.name: v for p in pipeline.parameters if (v := values[p.name]) or p.default == ""}
    try:
        expansion = expand(pipeline, sent)
    except Invalid as e:
        return Verdict(
            problems=tuple(e.problems) or (Problem(message=e.message, hint=e.hint),),
            pipeline=pipeline,
            parameters=pipeline.parameters,
            values=sent,
        )
    return Verdict(
        pipeline=pipeline,
        steps=len(expansion.instances),
        drawing=_preview(pipeline),
        parameters=pipeline.parameters,
        values=sent,
    )


def _preview(pipeline: Pipeline) -> Drawing:
    """The graph of the document itself: a step with a matrix is one box."""
    place = {step.name: n for n, step in enumerate(pipeline.steps)}
    items = [
        Item(key=n, label=step.name, shown="waiting", steps=(n,) * step.size, counts={})
        for n, step in enumerate(pipeline.steps)
    ]
    pairs: Sequence[tuple[int, int]] = [
        (place[need], n) for n, step in enumerate(pipeline.steps) for need in step.needs
    ]
    return arrange(items, pairs, collapsed=len(items) > COLLAPSE_ABOVE)


def _only(projects: Sequence[Any]) -> str:
    return projects[0].name if len(projects) == 1 else ""


ROUTES = (new_run_page, check_document, submit_run)
