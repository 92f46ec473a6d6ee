"""The experiment that is meant when a client names none: id 0, or `Default`."""

from __future__ import annotations

from verderer.core.access import Action, require
from verderer.core.model.actor import Scope
from verderer.core.tracking.entities import Experiment
from verderer.core.tracking.limits import MAX_EXPERIMENT_NAME
from verderer.core.tracking.names import (
    DEFAULT_EXPERIMENT,
    DEFAULT_EXPERIMENT_ID,
    make_experiment_id,
    no_experiment,
    parse_experiment_id,
)
from verderer.store.database import Tx
from verderer.store.tables import audit
from verderer.store.tables.tracking import experiments as table
from verderer.store.tables.tracking import runs
from verderer.store.views.tracked import experiments as views
from verderer.store.views.visible import ProjectRow
from verderer.usecases.context import Context
from verderer.usecases.tracking.caller import Caller, look, scope_of
from verderer.usecases.tracking.moments import now_ms


def is_default(experiment: str | None) -> bool:
    """Whether an id means the default experiment."""
    return experiment in (None, "", DEFAULT_EXPERIMENT_ID)


async def default_experiment(ctx: Context, tx: Tx, caller: Caller) -> Experiment:
    """The caller's default experiment; it is made when it is asked for the first time.

    A step's is called as its pipeline, so that runs of one pipeline lie together.

    Raises:
        Invalid: the caller sees several projects and names none.
        NotFound: the caller sees no project.
        NotAllowed: it is still to be made, and the caller may only read.
    """
    project, name, found = await _look_for(tx, caller)
    if found is not None:
        return found
    require(caller.actor, Action.TRACKING_WRITE, project=project.id)
    made = make_experiment_id(ctx.chance())
    if await table.add_once(tx, id=made, project=project.id, name=name, now_ms=now_ms(ctx)):
        entry = audit.Entry(
            action="experiment.created",
            project=project.id,
            object=f"experiment:{made}",
            detail={"name": name},
        )
        await audit.add(tx, caller.actor, [entry])
    _, _, found = await _look_for(tx, caller)
    if found is None:
        raise no_experiment(f"name '{name}'")
    return found


async def existing_default(tx: Tx, caller: Caller) -> Experiment | None:
    """The caller's default experiment, or None when nobody has used it yet.

    Raises:
        Invalid, NotFound: as `default_experiment`.
    """
    return (await _look_for(tx, caller))[2]


async def _look_for(tx: Tx, caller: Caller) -> tuple[ProjectRow, str, Experiment | None]:
    project = (await look(tx, caller)).only
    name = await default_name(tx, caller)
    found = await views.named(tx, Scope(projects=frozenset({project.id})), name)
    return project, name, found[0] if found else None


async def default_name(tx: Tx, caller: Caller) -> str:
    """What the caller's default experiment is called."""
    if (step := caller.step) is None:
        return DEFAULT_EXPERIMENT
    pipeline, _ = await runs.pipeline_of(tx, step.run, step.step)
    return pipeline[:MAX_EXPERIMENT_NAME] or DEFAULT_EXPERIMENT


async def find_experiment(
    ctx: Context, tx: Tx, caller: Caller, experiment: str | None
) -> Experiment:
    """The experiment that an id means, the default one too.

    Raises:
        NotFound: there is none, or it is not the caller's to know about.
        Invalid, NotAllowed: as `default_experiment`, or it is no id.
    """
    if is_default(experiment):
        return await default_experiment(ctx, tx, caller)
    wanted = parse_experiment_id(experiment)
    found = await views.get(tx, await scope_of(tx, caller), wanted)
    if found is None:
        raise no_experiment(f"id {wanted}")
    return found
