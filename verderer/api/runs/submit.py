"""POST /runs and /runs/batch: committed before they are answered."""

from __future__ import annotations

from typing import Annotated, Any

import msgspec
import structlog
from litestar import Request, Response, post
from litestar.openapi.datastructures import ResponseSpec
from litestar.openapi.spec import Example
from litestar.params import Body, HeaderParameter, JSONBody
from litestar.types import Scope

from verderer.api.auth import ActorArg, ContextArg, actor_of
from verderer.api.credentials import one_header
from verderer.api.errors import translate
from verderer.api.runs.found import RunArg, no_such_run, the_run
from verderer.api.wire_route import Reply, WireRoute, answered_by
from verderer.core.access import Action
from verderer.core.errors import Invalid, Problem
from verderer.store.views.runs import get_run
from verderer.usecases.submit_run import Submission, Submitted, Submitter
from verderer.wire import runs as wire
from verderer.wire.problems import ProblemDocument
from verderer.wire.validation import values_of

log = structlog.get_logger("verderer.api")

MAX_ONE = 11 * 1024 * 1024
"""Bytes: the reader of documents refuses what is too long in words of its own."""
MAX_MANY = 32 * 1024 * 1024

HttpRequest = Request[Any, Any, Any]
KeyArg = Annotated[
    str | None,
    HeaderParameter(
        name="Idempotency-Key",
        description="1 to 200 characters; sent again, it gives the run of the first time.",
        required=False,
    ),
]
_KEY_HEADER = b"idempotency-key"
_HELLO = "metadata: {name: hello}\nsteps:\n  - name: greet\n    command: [echo, hello]\n"
_ONE = Example(
    summary="One step",
    value={"pipeline": _HELLO, "project": "demo", "parameters": {}},
)
_MANY = Example(
    summary="A sweep over one document",
    value={
        "pipeline": "metadata: {name: sweep}\nparameters: {lr: 0.1}\nsteps:\n  - …\n",
        "project": "demo",
        "runs": [{"parameters": {"lr": 0.1}}, {"parameters": {"lr": 0.01}}],
    },
)
_KNOWN = {200: ResponseSpec(wire.SubmittedRun, description="The idempotency key was known.")}


class _Submit(WireRoute[wire.NewRun, wire.SubmittedRun]):
    """Does what `submit` describes: the hottest request that people's programs make."""

    async def reply(self, scope: Scope, document: wire.NewRun) -> Reply[wire.SubmittedRun]:
        state = scope["litestar_app"].state
        submission = _submission(document, one_header(scope["headers"], _KEY_HEADER) or None)
        made = await state.submitter.submit(actor_of(scope), submission)
        shown = _show(state.context.public_url, made)
        place = (b"location", f"/api/v1/runs/{made.id}".encode())
        return Reply(shown, 201 if made.created else 200, (place,))


@post(
    "/runs",
    opt={"action": Action.RUN_SUBMIT},
    tags=["runs"],
    summary="Submit a run",
    responses=_KNOWN,
    request_max_body_size=MAX_ONE,
    middleware=[answered_by(_Submit(wire.NewRun, limit=MAX_ONE))],
)
async def submit(
    request: HttpRequest,
    context: ContextArg,
    actor: ActorArg,
    data: Annotated[wire.NewRun, Body(examples=[_ONE])],
    idempotency_key: KeyArg = None,
) -> Response[wire.SubmittedRun]:
    """Commit a run. 201 means that it will not be lost; 200 that the key was known.

    422 `invalid` lists every problem of the document with its line and column; 409 `conflict`
    when the key was used for something else.
    """
    submission = _submission(data, idempotency_key)
    return _answer(context.public_url, await _submitter(request).submit(actor, submission))


def _submission(data: wire.NewRun, key: str | None) -> Submission:
    return Submission(
        document=data.pipeline.encode(),
        parameters=values_of(data.parameters),
        project=data.project,
        resource_group=data.resource_group,
        idempotency_key=key,
    )


@post(
    "/runs/batch",
    opt={"action": Action.RUN_SUBMIT},
    tags=["runs"],
    summary="Submit up to 1,000 runs",
    status_code=200,
    request_max_body_size=MAX_MANY,
)
async def submit_batch(
    request: HttpRequest,
    context: ContextArg,
    actor: ActorArg,
    data: Annotated[wire.NewBatch, Body(examples=[_MANY])],
    idempotency_key: KeyArg = None,
) -> wire.BatchResult:
    """Commit many runs; each stands or falls by itself and is answered in its place.

    With the header `Idempotency-Key: K`, a run without a key of its own gets `K/0`, `K/1`, … by
    its place, so that the whole may be sent again.
    """
    submissions = _submissions(data, idempotency_key)
    results = await _submitter(request).submit_all(actor, submissions)
    return wire.BatchResult([_item(context.public_url, r, context.chance) for r in results])


@post(
    "/runs/{run:str}/clone",
    opt={"action": Action.RUN_SUBMIT},
    tags=["runs"],
    summary="Submit the same pipeline again",
    responses=_KNOWN,
)
async def clone(
    request: HttpRequest,
    context: ContextArg,
    actor: ActorArg,
    run: RunArg,
    data: JSONBody[wire.CloneIn | None] = None,
    idempotency_key: KeyArg = None,
) -> Response[wire.SubmittedRun]:
    """A new run of the same document; parameters that are left out keep their value."""
    async with context.db.reading() as tx:
        head = await the_run(tx, actor, run)
        found = await get_run(tx, actor.scope, head.id)
    if found is None:
        raise no_such_run()
    changed = values_of(data.parameters) if data else {}
    submission = Submission(
        document=found.document.encode(),
        parameters={**found.parameters, **changed},
        project=found.project,
        resource_group=found.resource_group,
        idempotency_key=idempotency_key,
        cloned_from=found.id,
    )
    return _answer(context.public_url, await _submitter(request).submit(actor, submission))


def _submitter(request: HttpRequest) -> Submitter:
    submitter: Submitter = request.app.state.submitter
    return submitter


def _submissions(data: wire.NewBatch, key: str | None) -> list[Submission]:
    missing = [i for i, run in enumerate(data.runs) if not (run.pipeline or data.pipeline)]
    if missing:
        problem = Problem(field=f"runs[{missing[0]}].pipeline", message="is missing")
        hint = "Give it for each run, or once for all beside `runs`."
        raise Invalid("a run of the batch has no pipeline", problems=[problem], hint=hint)
    # Most batches are one text many times: encode it once.
    bodies: dict[str, bytes] = {}
    for run in data.runs:
        text = run.pipeline or data.pipeline
        if text not in bodies:
            bodies[text] = text.encode()
    return [
        Submission(
            document=bodies[run.pipeline or data.pipeline],
            parameters=values_of(run.parameters) if run.parameters else {},
            project=run.project or data.project,
            resource_group=run.resource_group or data.resource_group,
            idempotency_key=run.idempotency_key or (f"{key}/{i}" if key else None),
        )
        for i, run in enumerate(data.runs)
    ]


def _item(public_url: str, result: Submitted | BaseException, chance: Any) -> wire.BatchItem:
    if isinstance(result, Submitted):
        return wire.BatchItem(status=201 if result.created else 200, run=_show(public_url, result))
    answer = translate(result, lambda: f"{chance():016x}")
    if answer.body.incident:
        log.warning("a run of a batch failed", incident=answer.body.incident, error=str(result))
    problem = msgspec.convert(answer.body, ProblemDocument, from_attributes=True)
    return wire.BatchItem(status=answer.status, problem=problem)


def _answer(public_url: str, made: Submitted) -> Response[wire.SubmittedRun]:
    shown = _show(public_url, made)
    return Response(
        shown,
        status_code=201 if made.created else 200,
        headers={"Location": f"/api/v1/runs/{shown.id}"},
    )


def _show(public_url: str, made: Submitted) -> wire.SubmittedRun:
    run = made.id
    return wire.SubmittedRun(
        id=run,
        name=made.name,
        project=made.project,
        steps=made.steps,
        created=made.created,
        url=f"{public_url}/runs/{run}",
    )


ROUTES = (submit, submit_batch, clone)
