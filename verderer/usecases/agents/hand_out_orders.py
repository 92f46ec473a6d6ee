"""Hand out: what a cluster should be running, whole or as far as it changed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from verderer.core.errors import Conflict
from verderer.core.fencing import lease_left
from verderer.core.model.actor import Actor
from verderer.core.model.attempt import AttemptKey, AttemptState
from verderer.core.model.ids import run_id_text
from verderer.core.model.places import log_prefix, output_key
from verderer.core.pipeline.expand import Instance, Source, sources_of
from verderer.core.pipeline.render import Launch, render
from verderer.core.pipeline.spec import Pipeline, StepSpec
from verderer.store.database import Row, Tx
from verderer.store.tables import attempts, results
from verderer.store.tables.lost import fences
from verderer.usecases.context import Context
from verderer.usecases.step_tokens import make_step_token

MOST = 2000
"""Orders in one answer; the rest follows at once."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Carried:
    """A file or folder to fetch or to store."""

    name: str
    path: str
    key: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Begin:
    """Everything that is needed to start an attempt."""

    run_name: str
    step: str
    project: str
    spec: StepSpec
    launch: Launch
    env: Mapping[str, str]
    inputs: Sequence[Carried]
    outputs: Sequence[Carried]


@dataclass(frozen=True, slots=True, kw_only=True)
class Order:
    """Run it (`begin`), or see that it ends (`begin` is None)."""

    key: AttemptKey
    revision: int
    begin: Begin | None
    log_prefix: str
    grace_s: float


@dataclass(frozen=True, slots=True)
class Orders:
    """Orders up to `revision`; `full` when they are everything that should run."""

    revision: int
    full: bool
    orders: Sequence[Order]
    lease_s: float = 0.0
    """How long leased work may go on, from when this was asked for; 0 or less: not at all."""


async def hand_out(ctx: Context, actor: Actor, *, epoch: int, since: int) -> Orders:
    """Orders of the actor's cluster that changed after revision `since`; all of them when 0.

    Raises:
        Conflict: `stale_epoch`: another instance speaks for the cluster now.
    """
    async with ctx.db.reading() as tx:
        silent_s = await fences.silence_of(tx, actor.id, epoch)
        if silent_s is None:
            raise Conflict("another agent speaks for this cluster now", code="stale_epoch")
        revision, rows = await attempts.desired(tx, actor.id, since, most=MOST)
        starting = [row for row in rows if row["state"] != AttemptState.STOPPING]
        made = await _inputs(ctx, tx, starting)
        orders = [await _order(ctx, tx, row, made) for row in rows]
    # A part of everything is not everything: the agent must not stop what comes later.
    full = since == 0 and len(rows) < MOST
    return Orders(revision, full, orders, lease_left(silent_s))


_Made = Mapping[tuple[int, int, str], str]
"""Object keys by run, step and output."""


async def _inputs(ctx: Context, tx: Tx, rows: Sequence[Row]) -> _Made:
    runs = set()
    for row in rows:
        pipeline = await ctx.pipelines.load(tx, row["document"])
        if pipeline.steps[row["template"]].inputs:
            runs.add(row["run_id"])
    if not runs:
        return {}
    return {
        (found["run_id"], found["idx"], found["name"]): found["key"]
        for found in await results.newest_artifacts(tx, sorted(runs))
    }


async def _order(ctx: Context, tx: Tx, row: Row, made: _Made) -> Order:
    key = AttemptKey(row["run_id"], row["idx"], row["number"])
    pipeline = await ctx.pipelines.load(tx, row["document"])
    spec = pipeline.steps[row["template"]]
    stopping = row["state"] == AttemptState.STOPPING
    return Order(
        key=key,
        revision=row["revision"],
        begin=None if stopping else _begin(ctx, row, key, pipeline, made),
        log_prefix=log_prefix(row["project_id"], key),
        grace_s=float(spec.grace_s),
    )


def _begin(ctx: Context, row: Row, key: AttemptKey, pipeline: Pipeline, made: _Made) -> Begin:
    spec = pipeline.steps[row["template"]]
    matrix = tuple((row["matrix"] or {}).items())
    instance = Instance(key.step, row["name"], row["template"], matrix)
    sources = _sources(ctx, row, pipeline, instance)
    launch = render(
        spec,
        instance,
        parameters=row["parameters"],
        run_id=run_id_text(key.run),
        run_name=row["run_name"],
        input_paths={one.name: one.path for one in spec.inputs},
        output_paths={one.name: one.path for one in spec.outputs},
    )
    return Begin(
        run_name=row["run_name"],
        step=row["name"],
        project=row["project"],
        spec=spec,
        launch=launch,
        env=launch.env | _platform_env(ctx, row, key),
        inputs=[
            Carried(name=s.input, path=s.path, key=found)
            for s in sources
            # What was skipped or failed has left nothing; the program finds nothing there.
            if (found := made.get((key.run, s.instance, s.output)))
        ],
        outputs=[
            Carried(name=o.name, path=o.path, key=output_key(row["project_id"], key, o.name))
            for o in spec.outputs
        ],
    )


def _sources(ctx: Context, row: Row, pipeline: Pipeline, instance: Instance) -> Sequence[Source]:
    if not pipeline.steps[row["template"]].inputs:
        return ()
    return sources_of(
        pipeline, ctx.pipelines.expand(row["document"], pipeline, row["parameters"]), instance
    )


def _platform_env(ctx: Context, row: Row, key: AttemptKey) -> dict[str, str]:
    return {
        "VERDERER_URL": ctx.public_url,
        "VERDERER_PROJECT": row["project"],
        "VERDERER_ATTEMPT": str(key.number),
        "MLFLOW_TRACKING_URI": f"{ctx.public_url}/mlflow",
        "MLFLOW_TRACKING_TOKEN": make_step_token(ctx, key, project=row["project_id"]),
    }
