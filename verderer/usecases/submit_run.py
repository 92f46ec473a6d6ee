"""Submit: a document becomes a run with its steps, committed before anybody is told so."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime

from verderer.core import access
from verderer.core.access import Action
from verderer.core.errors import Conflict, Fault, Invalid, NotFound, Problem, VerdererError
from verderer.core.model.actor import Actor, ActorKind
from verderer.core.model.ids import make_run_id, run_id_text
from verderer.core.model.run import RunState
from verderer.core.model.step import StepState
from verderer.core.opening import Opening, open_run
from verderer.core.pipeline.expand import Expansion
from verderer.core.pipeline.spec import Pipeline
from verderer.store.database import Row, Tx
from verderer.store.tables import audit, documents, project_names, queue, runs
from verderer.usecases.batching import Batcher
from verderer.usecases.context import Context

MAX_KEY = 200
_BLOCK = 1000
_TOGETHER = 500
"""Runs of a batch in one transaction."""
_LARGE = 20_000
"""Bytes of a document that are parsed beside the event loop."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Submission:
    """What somebody sends."""

    document: bytes
    parameters: Mapping[str, str] = field(default_factory=dict)
    project: str | None = None
    """None: the document names it, or the sender has just one."""
    resource_group: str = ""
    """Empty: the document names it, or the rules choose."""
    idempotency_key: str | None = None
    """The same key in the same project gives the run that was made the first time."""
    cloned_from: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Submitted:
    """A run that is committed."""

    run: int
    name: str
    project: str
    steps: int
    created: bool
    """False: the idempotency key was known."""

    @property
    def id(self) -> str:
        return run_id_text(self.run)


@dataclass(frozen=True, slots=True)
class _Recipe:
    """What submissions of the same text, project and parameters have in common."""

    project: int
    project_name: str
    group: int
    """The resource group's id."""
    body: bytes
    sha256: bytes
    pipeline: Pipeline
    expansion: Expansion
    opening: Sequence[Opening]
    open: int
    """Steps that are not over from the start."""


@dataclass(frozen=True, slots=True)
class _Ready:
    """A submission with everything decided that can be decided outside the transaction."""

    actor: Actor
    recipe: _Recipe
    run: runs.NewRun


_Recipes = dict[tuple[bytes, str | None, str, tuple[tuple[str, str], ...]], _Recipe]


class Submitter:
    """Commits submissions, many in one transaction. One for each process."""

    def __init__(self, ctx: Context) -> None:
        self._ctx = ctx
        self._projects: dict[str, int] = {}
        self._shapes: dict[bytes, int] = {}
        self._ids: list[range] = []
        self._batches: Batcher[_Ready, Submitted] = Batcher(self._commit)
        self._lanes = asyncio.Semaphore(2)

    async def submit(self, actor: Actor, submission: Submission) -> Submitted:
        """Commit a run.

        Raises:
            Invalid: the document or a parameter is malformed; nothing was stored.
            NotFound, NotAllowed: the actor may not submit to that project, or the project's rules
                have no resource group for it.
            Conflict: the idempotency key was used for something else.
            Fault: PostgreSQL did not answer; with an idempotency key it is safe to send again.
        """
        recipe = await self._recipe(actor, submission)
        return await self._batches.add(self._ready(actor, submission, recipe))

    async def submit_all(
        self, actor: Actor, submissions: Sequence[Submission]
    ) -> list[Submitted | Exception]:
        """Commit many; each stands or falls by itself."""
        recipes: _Recipes = {}
        found: list[_Ready | VerdererError] = []
        for submission in submissions:
            try:
                found.append(await self._prepare(actor, submission, recipes))
            except VerdererError as e:
                found.append(e)
        ready = [one for one in found if isinstance(one, _Ready)]
        parts = [ready[i : i + _TOGETHER] for i in range(0, len(ready), _TOGETHER)]
        done = await asyncio.gather(*(self._commit_part(part) for part in parts))
        answers = (answer for part in done for answer in part)
        return [next(answers) if isinstance(one, _Ready) else one for one in found]

    async def _commit_part(self, part: Sequence[_Ready]) -> Sequence[Submitted | Exception]:
        async with self._lanes:
            try:
                return await self._commit(part)
            except Fault as e:
                return [e] * len(part)

    async def _prepare(self, actor: Actor, submission: Submission, recipes: _Recipes) -> _Ready:
        given = tuple(submission.parameters.items())
        kind = (submission.document, submission.project, submission.resource_group, given)
        if (recipe := recipes.get(kind)) is None:
            recipe = recipes[kind] = await self._recipe(actor, submission)
        return self._ready(actor, submission, recipe)

    async def _recipe(self, actor: Actor, submission: Submission) -> _Recipe:
        sha256, pipeline = await self._parse(submission.document)
        name = await self._project_name(actor, submission.project, pipeline)
        project = await self._project_id(name)
        access.require(actor, Action.RUN_SUBMIT, project=project)
        group = await _group(self._ctx, project, submission.resource_group, pipeline)
        expansion = self._ctx.pipelines.expand(sha256, pipeline, submission.parameters)
        opening = open_run(pipeline, expansion.instances, expansion.edges, expansion.parameters)
        return _Recipe(
            project=project,
            project_name=name,
            group=group,
            body=submission.document,
            sha256=sha256,
            pipeline=pipeline,
            expansion=expansion,
            opening=opening,
            open=sum(not o.state.over for o in opening),
        )

    async def _parse(self, document: bytes) -> tuple[bytes, Pipeline]:
        """Large documents take seconds: others must not wait for them."""
        if len(document) < _LARGE:
            return self._ctx.pipelines.parse(document)
        return await asyncio.to_thread(self._ctx.pipelines.parse, document)

    def _ready(self, actor: Actor, submission: Submission, recipe: _Recipe) -> _Ready:
        key = submission.idempotency_key
        if key is not None and not (0 < len(key) <= MAX_KEY and key.isprintable()):
            raise Invalid(f"an idempotency key has 1 to {MAX_KEY} printable characters")
        unix_ms = int(self._ctx.clock().timestamp() * 1000)
        run = runs.NewRun(
            id=make_run_id(unix_ms=unix_ms, chance=self._ctx.chance()),
            project=recipe.project,
            name=recipe.pipeline.name,
            labels=dict(recipe.pipeline.labels),
            document=recipe.sha256,
            parameters=recipe.expansion.parameters,
            steps=len(recipe.opening),
            open=recipe.open,
            actor=str(actor),
            user=actor.id if actor.kind is ActorKind.USER else 0,
            idempotency_key=key,
            cloned_from=submission.cloned_from,
            group=recipe.group,
            priority=int(recipe.pipeline.priority),
        )
        return _Ready(actor, recipe, run)

    async def _project_name(self, actor: Actor, asked: str | None, pipeline: Pipeline) -> str:
        if asked and pipeline.project and asked != pipeline.project:
            raise Invalid(
                f"the document belongs to project {pipeline.project}, not {asked}",
                problems=[Problem(message=f"is {pipeline.project}", field="metadata.project")],
                hint="Submit it to that project, or leave metadata.project out.",
            )
        if name := asked or pipeline.project:
            return name
        if len(actor.roles) == 1:
            async with self._ctx.db.reading() as tx:
                return (await project_names.names(tx, list(actor.roles)))[next(iter(actor.roles))]
        raise Invalid(
            "no project is named",
            problems=[Problem(message="is missing", field="metadata.project")],
            hint="Add metadata.project, or choose one with --project.",
        )

    async def _project_id(self, name: str) -> int:
        if (found := self._projects.get(name)) is not None:
            return found
        async with self._ctx.db.reading() as tx:
            project = await project_names.id_of(tx, name)
        if project is None:
            raise NotFound("no such project, or you are not a member of it")
        self._projects[name] = project
        return project

    async def _commit(self, batch: Sequence[_Ready]) -> list[Submitted | Exception]:
        try:
            return await self._commit_together(self._apart(batch))
        except Fault:
            raise
        except VerdererError as e:
            if len(batch) == 1:
                return [e]
            # One of them is at fault: find it by committing each alone.
            return [(await self._commit([one]))[0] for one in batch]

    async def _commit_together(self, batch: Sequence[_Ready]) -> list[Submitted | Exception]:
        bodies = {r.run.document: r.recipe.body for r in batch}
        async with self._ctx.db.transaction() as tx:
            unknown = {k: b for k, b in bodies.items() if not self._ctx.pipelines.is_stored(k)}
            if unknown:
                await documents.keep_documents(tx, {k: b.decode() for k, b in unknown.items()})
            added = await runs.add_runs(tx, [r.run for r in batch])
            new = [r for r in batch if r.run.id in added]
            shapes = await self._shape_ids(tx, new)
            await self._add_steps(tx, new, shapes)
            await runs.count(tx, _counts(new))
            for actor, entries in _entries(new):
                await audit.add(tx, actor, entries)
            old = {
                (r.run.project, r.run.idempotency_key): r for r in batch if r.run.id not in added
            }
            known = await runs.by_idempotency_key(tx, list(old)) if old else {}  # type: ignore[arg-type]
        for sha256 in unknown:
            self._ctx.pipelines.was_stored(sha256)
        self._shapes |= shapes
        if new:
            topics = {f"project:{r.run.project}" for r in new}
            self._ctx.wakeups.wake(["queue", *topics])
        answers = [_answer(r, r.run.id in added, known) for r in batch]
        clashes = [i for i, answer in enumerate(answers) if answer is None]
        if clashes:
            again = await self._commit([self._renumber(batch[i]) for i in clashes])
            for i, answer in zip(clashes, again, strict=True):
                answers[i] = answer
        return [answer for answer in answers if answer is not None]

    def _apart(self, batch: Sequence[_Ready]) -> Sequence[_Ready]:
        """The same with a number for each run: of a thousand in one millisecond, two share one in
        every eighth batch."""
        taken: set[int] = set()
        apart = []
        for one in batch:
            ready = one
            while ready.run.id in taken:
                ready = self._renumber(ready)
            taken.add(ready.run.id)
            apart.append(ready)
        return apart

    def _renumber(self, ready: _Ready) -> _Ready:
        """Another number of the same millisecond, for a run whose own is taken."""
        return replace(
            ready, run=replace(ready.run, id=ready.run.id ^ (self._ctx.chance() & 0x3FFFFF))
        )

    async def _shape_ids(self, tx: Tx, new: Sequence[_Ready]) -> dict[bytes, int]:
        wanted = {}
        for pipeline in _pipelines(new):
            for spec in pipeline.steps:
                digest = documents.shape_digest(spec.requests, spec.nodes)
                if digest not in self._shapes:
                    wanted[digest] = (spec.requests, spec.nodes)
        return self._shapes | (await documents.shape_ids(tx, wanted) if wanted else {})

    async def _add_steps(self, tx: Tx, new: Sequence[_Ready], shapes: Mapping[bytes, int]) -> None:
        now = self._ctx.clock()
        rows: list[tuple[object, ...]] = []
        edges: list[tuple[int, int]] = []
        waiting: list[tuple[int, int, int, int, int, int]] = []
        shapes_of = {
            id(pipeline): [
                shapes[documents.shape_digest(s.requests, s.nodes)] for s in pipeline.steps
            ]
            for pipeline in _pipelines(new)
        }
        for ready in new:
            recipe = ready.recipe
            ids = await self._take_ids(tx, len(recipe.opening))
            shape_of = shapes_of[id(recipe.pipeline)]
            rows += _step_rows(ready, ids, shape_of, now)
            edges += [(ids[a], ids[b]) for a, b in recipe.expansion.edges]
            run = ready.run
            waiting += [
                (ids[i], run.id, run.project, shape_of[inst.template], run.group, run.priority)
                for i, inst in enumerate(recipe.expansion.instances)
                if recipe.opening[i].state is StepState.READY
            ]
        await runs.add_steps(tx, rows)
        await runs.add_needs(tx, edges)
        await queue.add_new(tx, waiting)

    async def _take_ids(self, tx: Tx, count: int) -> Sequence[int]:
        """Numbers from blocks that this process owns; a block that is left half used is no loss."""
        while self._ids and len(self._ids[-1]) < count and len(self._ids[-1]) < _BLOCK:
            self._ids.pop()
        if not self._ids or count > _BLOCK:
            blocks = await runs.take_step_ids(tx, max(1, -(-count // _BLOCK)))
            if count > _BLOCK:
                return [i for start in blocks for i in range(start, start + _BLOCK)][:count]
            self._ids.append(range(blocks[0], blocks[0] + _BLOCK))
        block = self._ids.pop()
        if rest := block[count:]:
            self._ids.append(rest)
        return block[:count]


async def _group(ctx: Context, project: int, asked: str, pipeline: Pipeline) -> int:
    """The id of the resource group that a run of the project goes to."""
    if asked and pipeline.resource_group and asked != pipeline.resource_group:
        where = "metadata.resourceGroup"
        raise Invalid(
            f"the document asks for resource group {pipeline.resource_group}, not {asked}",
            problems=[Problem(message=f"is {pipeline.resource_group}", field=where)],
            hint=f"Name the same one, or leave {where} out.",
        )
    grant = await ctx.rules.route(
        ctx.db,
        project,
        labels=dict(pipeline.labels),
        asked=asked or pipeline.resource_group,
        at=ctx.clock().timestamp(),
    )
    return grant.group


def _pipelines(new: Sequence[_Ready]) -> list[Pipeline]:
    """Each document of the batch once."""
    return list({id(ready.recipe.pipeline): ready.recipe.pipeline for ready in new}.values())


def _step_rows(
    ready: _Ready, ids: Sequence[int], shape_of: Sequence[int], now: datetime
) -> list[tuple[object, ...]]:
    rows: list[tuple[object, ...]] = []
    for i, instance in enumerate(ready.recipe.expansion.instances):
        opening = ready.recipe.opening[i]
        rows.append(
            (
                ids[i],
                ready.run.id,
                i,
                instance.name,
                instance.template,
                dict(instance.matrix) or None,
                shape_of[instance.template],
                opening.state.value,
                opening.waits,
                opening.note,
                now if opening.state is StepState.READY else None,
                now if opening.state.over else None,
            )
        )
    return rows


def _counts(new: Sequence[_Ready]) -> Counter[tuple[int, RunState]]:
    counts: Counter[tuple[int, RunState]] = Counter()
    for ready in new:
        state = RunState.QUEUED if ready.run.open else RunState.SUCCEEDED
        counts[ready.run.project, state] += 1
    return counts


def _entries(new: Sequence[_Ready]) -> list[tuple[Actor, list[audit.Entry]]]:
    # Submissions of one batch mostly share a few actors.
    by_actor: dict[int, tuple[Actor, list[audit.Entry]]] = {}
    for ready in new:
        entries = by_actor.setdefault(id(ready.actor), (ready.actor, []))[1]
        entries.append(
            audit.Entry(
                action="run.submitted",
                project=ready.run.project,
                run=ready.run.id,
                detail={"name": ready.run.name, "steps": ready.run.steps},
            )
        )
        if not ready.run.open:
            over = audit.Entry(action="run.succeeded", project=ready.run.project, run=ready.run.id)
            entries.append(over)
    return list(by_actor.values())


def _answer(
    ready: _Ready, created: bool, known: Mapping[tuple[int, str | None], Row]
) -> Submitted | Exception | None:
    """The answer for one submission; None when its number was taken by another run."""
    run = ready.run
    if created:
        return Submitted(
            run=run.id,
            name=run.name,
            project=ready.recipe.project_name,
            steps=run.steps,
            created=True,
        )
    row = known.get((run.project, run.idempotency_key))
    if row is None:
        return None
    if row["document"] != run.document or row["parameters"] != run.parameters:
        return Conflict(
            f"the idempotency key was used for run {run_id_text(row['id'])}, which differs",
            hint="Use a new key for a new submission.",
        )
    return Submitted(
        run=row["id"],
        name=row["name"],
        project=ready.recipe.project_name,
        steps=row["steps"],
        created=False,
    )
