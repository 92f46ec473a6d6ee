"""Read what was tracked: experiments, runs, histories, models."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from verderer.core.access import Action, require
from verderer.core.errors import Invalid
from verderer.core.model.actor import Scope
from verderer.core.tracking.entities import (
    Experiment,
    LoggedModel,
    Stage,
    TrackedData,
    TrackedRun,
)
from verderer.core.tracking.grammar import EXPERIMENTS, RUNS
from verderer.core.tracking.limits import (
    MAX_PAGE_EXPERIMENTS,
    MAX_PAGE_RUNS,
    PAGE_EXPERIMENTS,
    PAGE_RUNS,
)
from verderer.core.tracking.names import (
    DEFAULT_EXPERIMENT,
    check_experiment_name,
    no_experiment,
    no_model,
    no_run,
    parse_experiment_id,
    parse_model_id,
    parse_run_uid,
)
from verderer.core.tracking.ordering import parse_ordering
from verderer.core.tracking.paging import page_token, parse_page_token
from verderer.core.tracking.search import parse_filter
from verderer.store.database import Tx
from verderer.store.views.tracked import experiments, models, runs
from verderer.usecases.context import Context
from verderer.usecases.tracking.caller import Caller, Sight, look, scope_of
from verderer.usecases.tracking.default_experiment import (
    default_experiment,
    existing_default,
    find_experiment,
    is_default,
)


async def read_experiment(ctx: Context, caller: Caller, experiment: str | None) -> Experiment:
    """One experiment by its id, deleted ones too; the default one is made when it is not there.

    Raises:
        NotFound, NotAllowed, Invalid: as `find_experiment`.
    """
    async with ctx.db.transaction() as tx:
        found = await find_experiment(ctx, tx, caller, experiment)
        require(caller.actor, Action.TRACKING_READ, project=found.project)
        return _shown(found, await look(tx, caller))


async def read_experiment_named(ctx: Context, caller: Caller, name: str | None) -> Experiment:
    """One experiment by its name, or by `project/name`.

    Raises:
        NotFound: there is none in what the caller sees.
        Invalid: several projects have one of this name.
    """
    wanted = check_experiment_name(name, "experiment_name")
    async with ctx.db.transaction() as tx:
        sight = await look(tx, caller)
        if wanted == DEFAULT_EXPERIMENT and caller.step is not None:
            return _shown(await default_experiment(ctx, tx, caller), sight)
        project, own_name = sight.split(wanted)
        found = await experiments.named(tx, sight.scope, wanted)
        if project is not None:
            inside = await experiments.named(tx, Scope(projects=frozenset({project.id})), own_name)
            found = inside or found
    if not found:
        raise no_experiment(f"name '{wanted}'")
    if len(found) > 1:
        raise Invalid(f"several projects have an experiment {wanted!a}: name it PROJECT/{wanted}")
    return _shown(found[0], sight)


async def search_experiments(
    ctx: Context,
    caller: Caller,
    *,
    filter_text: str | None = None,
    order_by: Sequence[str] = (),
    stage: Stage = Stage.ACTIVE,
    limit: int | None = None,
    token: str | None = None,
) -> tuple[list[Experiment], str]:
    """A page of experiments, and the token of the next one, empty at the end.

    Raises:
        Invalid: filter, order, limit or token cannot be read.
    """
    size = _size(limit, 1_000, MAX_PAGE_EXPERIMENTS, PAGE_EXPERIMENTS)
    wanted = experiments.Search(
        comparisons=parse_filter(filter_text, EXPERIMENTS),
        orderings=parse_ordering(order_by, EXPERIMENTS),
        stage=stage,
        offset=parse_page_token(token),
        limit=size + 1,
    )
    async with ctx.db.reading() as tx:
        sight = await look(tx, caller)
        search = replace(wanted, with_project=sight.several)
        found = await experiments.search(tx, sight.scope, search)
    shown = [_shown(one, sight) for one in found[:size]]
    return shown, page_token(wanted.offset + size) if len(found) > size else ""


async def read_run(ctx: Context, caller: Caller, uid: str | None) -> tuple[TrackedRun, TrackedData]:
    """One run with what it reported, deleted ones too.

    Raises:
        NotFound: there is none in what the caller sees.
    """
    async with ctx.db.reading() as tx:
        run = await visible_run(tx, caller, uid)
        return run, (await runs.reported(tx, await scope_of(tx, caller), [run]))[0]


async def search_runs(
    ctx: Context,
    caller: Caller,
    *,
    experiments_wanted: Sequence[str],
    filter_text: str | None = None,
    order_by: Sequence[str] = (),
    stage: Stage = Stage.ACTIVE,
    limit: int | None = None,
    token: str | None = None,
) -> tuple[list[tuple[TrackedRun, TrackedData]], str]:
    """A page of runs with what they reported, and the token of the next one, empty at the end.

    Experiments that the caller does not see hold no runs for it.

    Raises:
        Invalid: filter, order, limit, token or an experiment's id cannot be read.
    """
    size = _size(limit, 1_000, MAX_PAGE_RUNS, PAGE_RUNS)
    comparisons = parse_filter(filter_text, RUNS)
    orderings = parse_ordering(order_by, RUNS)
    offset = parse_page_token(token)
    async with ctx.db.reading() as tx:
        scope = await scope_of(tx, caller)
        wanted = runs.Search(
            experiments=await experiment_ids(tx, caller, experiments_wanted),
            comparisons=comparisons,
            orderings=orderings,
            stage=stage,
            offset=offset,
            limit=size + 1,
        )
        found = await runs.search(tx, scope, wanted)
        data = await runs.reported(tx, scope, found[:size])
    more = len(found) > size
    return list(zip(found[:size], data, strict=True)), page_token(offset + size) if more else ""


async def read_model(
    ctx: Context, caller: Caller, model_id: str | None, *, deleted_too: bool = False
) -> LoggedModel:
    """One logged model with what was logged about it.

    Raises:
        NotFound: there is none in what the caller sees.
    """
    uid = parse_model_id(model_id)
    async with ctx.db.reading() as tx:
        scope = await scope_of(tx, caller)
        found = await models.get(tx, scope, uid)
        if found is None or (found.deleted and not deleted_too):
            raise no_model(f"m-{uid}")
        return (await models.complete(tx, scope, [found]))[0]


async def visible_run(tx: Tx, caller: Caller, uid: str | None) -> TrackedRun:
    """One run, deleted ones too, without what it reported; raises `NotFound` as `read_run`."""
    wanted = parse_run_uid(uid)
    found = await runs.get(tx, await scope_of(tx, caller), wanted)
    if found is None:
        raise no_run(wanted)
    return found


async def experiment_ids(tx: Tx, caller: Caller, given: Sequence[str]) -> list[int]:
    """The ids that texts mean; 0 is the default experiment's, when it is there."""
    found: list[int] = []
    for one in given:
        if not is_default(one):
            found.append(parse_experiment_id(one))
        elif (default := await existing_default(tx, caller)) is not None:
            found.append(default.id)
    return found


def _size(limit: int | None, default: int, highest: int, page: int) -> int:
    size = default if limit is None else limit
    if not 0 < size <= highest:
        raise Invalid(
            f"Invalid value {size} for parameter 'max_results' supplied. "
            f"It must be a positive integer of at most {highest}."
        )
    return min(size, page)


def _shown(experiment: Experiment, sight: Sight) -> Experiment:
    if not sight.several:
        return experiment
    return replace(experiment, name=f"{experiment.project_name}/{experiment.name}")
