"""GET /runs…: runs, their steps and what was done to them."""

from __future__ import annotations

from typing import Annotated, Any

from litestar import Request, Response, get
from litestar.di import NamedDependency, Provide
from litestar.params import QueryParameter, SkipValidation

from verderer.api.auth import ActorArg, ContextArg
from verderer.api.etags import tagged
from verderer.api.paging import (
    USUAL,
    AfterArg,
    LimitArg,
    Page,
    page_of,
    read_cursor,
    write_cursor,
)
from verderer.api.runs.documents import (
    show_artifact,
    show_detail,
    show_event,
    show_run,
    show_step,
    show_step_detail,
)
from verderer.api.runs.found import (
    READ,
    RunArg,
    StepArg,
    no_such_run,
    run_number,
    the_run,
    the_step,
)
from verderer.core import access
from verderer.core.access import Action
from verderer.core.errors import Invalid, NotFound, Problem
from verderer.core.model.run import RunState
from verderer.store.views.run_parts import step_counts
from verderer.store.views.runs import RunFilter, get_run, list_events, list_runs
from verderer.store.views.steps import list_artifacts, list_attempts, list_steps
from verderer.store.views.visible import visible_projects
from verderer.wire import runs as wire

_MOST_TEXT = 200


def _asked(text: str) -> Any:
    return QueryParameter(description=text, max_length=_MOST_TEXT)


async def provide_wanted(
    states: Annotated[
        list[str] | None,
        QueryParameter(
            name="state", description=f"{', '.join(RunState)}; may be given several times."
        ),
    ] = None,
    project: Annotated[str | None, _asked("Of this project alone.")] = None,
    name: Annotated[str | None, _asked("The whole name.")] = None,
    submitter: Annotated[
        str | None,
        QueryParameter(
            name="actor", description="Who submitted: an e-mail address, or the part before @."
        ),
    ] = None,
    cluster: Annotated[str | None, _asked("A step of it was handed to this cluster.")] = None,
    label: Annotated[
        list[str] | None, QueryParameter(description="`key=value`; may be given several times.")
    ] = None,
    q: Annotated[str | None, _asked("Part of the name in any case, or a whole id.")] = None,
    order: Annotated[
        str, QueryParameter(pattern="^(newest|oldest)$", description="`newest` or `oldest` first.")
    ] = "newest",
) -> RunFilter:
    """Dependency `wanted`: which runs are asked for."""
    return RunFilter(
        project=_text(project),
        states=frozenset(_state(text) for text in states or ()),
        name=_text(name),
        actor=_text(submitter),
        cluster=_text(cluster),
        labels=tuple(_label(text) for text in label or ()),
        text=_text(q),
        oldest_first=order == "oldest",
    )


@get(
    "/runs",
    opt=READ,
    tags=["runs"],
    summary="List runs",
    dependencies={"wanted": Provide(provide_wanted)},
)
async def runs(
    context: ContextArg,
    actor: ActorArg,
    wanted: NamedDependency[SkipValidation[RunFilter]],
    limit: LimitArg = USUAL,
    after: AfterArg = "",
) -> Page[wire.RunOut]:
    """Runs of the caller's projects.

    A page that was filtered by what no index answers (actor, cluster, label, q) may be short, or
    empty, and still be followed by more: go on while `next` is there.
    """
    before = read_cursor(after, int)
    async with context.db.reading() as tx:
        if wanted.project and not await visible_projects(tx, actor.scope, wanted.project):
            # Rather than that the project has no runs.
            raise NotFound("no such project, or you are not a member of it")
        page = await list_runs(tx, actor.scope, wanted, before=before, limit=limit)
    following = write_cursor(page.before) if page.before is not None else None
    return Page([show_run(row) for row in page.rows], following)


@get("/runs/{run:str}", opt=READ, tags=["runs"], summary="Read a run")
async def one(
    request: Request[Any, Any, Any], context: ContextArg, actor: ActorArg, run: RunArg
) -> Response[wire.RunDetail]:
    """A run with what it was made from and how many of its steps are in which state."""
    async with context.db.reading() as tx:
        found = await get_run(tx, actor.scope, run_number(run))
        if found is None:
            raise no_such_run()
        access.require(actor, Action.RUN_READ, project=found.project_id)
        counts = await step_counts(tx, actor.scope, found.id)
    return tagged(request, show_detail(found, counts))


@get("/runs/{run:str}/steps", opt=READ, tags=["runs"], summary="List steps")
async def steps(
    context: ContextArg,
    actor: ActorArg,
    run: RunArg,
    limit: LimitArg = USUAL,
    after: AfterArg = "",
) -> Page[wire.StepOut]:
    """The steps of a run in their order, each with its newest attempt."""
    start = read_cursor(after, int)
    async with context.db.reading() as tx:
        found = await the_run(tx, actor, run)
        rows = await list_steps(tx, actor.scope, found.id, after=_index(start), limit=limit + 1)
    return page_of(rows, limit, key=lambda s: s.idx, show=show_step)


@get("/runs/{run:str}/steps/{step:str}", opt=READ, tags=["runs"], summary="Read a step")
async def step(
    request: Request[Any, Any, Any],
    context: ContextArg,
    actor: ActorArg,
    run: RunArg,
    step: StepArg,
) -> Response[wire.StepDetail]:
    """A step with all of its attempts."""
    async with context.db.reading() as tx:
        head = await the_run(tx, actor, run)
        found = await the_step(tx, actor, head, step)
        attempts = await list_attempts(tx, actor.scope, head.id, found.idx)
    return tagged(request, show_step_detail(found, attempts))


@get("/runs/{run:str}/events", opt=READ, tags=["runs"], summary="List events")
async def events(
    context: ContextArg,
    actor: ActorArg,
    run: RunArg,
    limit: LimitArg = USUAL,
    after: AfterArg = "",
) -> Page[wire.EventOut]:
    """Who did what to the run and its parts, the newest first."""
    before = read_cursor(after, int)
    async with context.db.reading() as tx:
        found = await the_run(tx, actor, run)
        rows = await list_events(tx, actor.scope, found.id, before=before, limit=limit + 1)
    return page_of(rows, limit, key=lambda e: e.seq, show=show_event)


@get("/runs/{run:str}/artifacts", opt=READ, tags=["runs"], summary="List artifacts")
async def artifacts(
    context: ContextArg,
    actor: ActorArg,
    run: RunArg,
    step: Annotated[str | None, _asked("Of this step alone: its name or index.")] = None,
) -> Page[wire.ArtifactOut]:
    """What the steps left behind; at most 2,000: the list has one page."""
    async with context.db.reading() as tx:
        head = await the_run(tx, actor, run)
        idx = (await the_step(tx, actor, head, step)).idx if step else None
        rows = await list_artifacts(tx, actor.scope, head.id, idx)
    return Page([show_artifact(row, run) for row in rows])


def _text(value: str | None) -> str | None:
    """Empty is the same as left out; PostgreSQL takes no NUL."""
    return value.replace("\x00", "") or None if value else None


def _state(text: str) -> RunState:
    try:
        return RunState(text)
    except ValueError:
        hint = f"one of {', '.join(RunState)}"
        problem = Problem(field="state", message="is no state of a run", hint=hint)
        raise Invalid("there is no such state", problems=[problem]) from None


def _label(text: str) -> tuple[str, str]:
    key, equals, value = text.partition("=")
    if not key or not equals or "\x00" in text or len(text) > _MOST_TEXT:
        problem = Problem(field="label", message="is not key=value", hint="try team=vision")
        raise Invalid("label is not key=value", problems=[problem])
    return key, value


def _index(start: int | None) -> int:
    return -1 if start is None else min(start, 2**31 - 1)


ROUTES = (runs, one, steps, step, events, artifacts)
