"""Change and search logged models."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from verderer.core.access import Action, require
from verderer.core.errors import Invalid, NotFound
from verderer.core.tracking.entities import LoggedModel, ModelStatus, Pairs
from verderer.core.tracking.grammar import MODELS
from verderer.core.tracking.limits import MAX_DATASETS, MAX_KEY, PAGE_MODELS
from verderer.core.tracking.names import (
    check_key,
    check_model_name,
    check_text,
    made_up_name,
    no_run,
    param_value,
    parse_model_id,
    parse_run_uid,
    tag_value,
)
from verderer.core.tracking.ordering import Ordering, check_once, read_field
from verderer.core.tracking.paging import page_token, parse_page_token
from verderer.core.tracking.search import parse_filter
from verderer.store.tables import audit
from verderer.store.tables.tracking import models as table
from verderer.store.views.tracked import models as views
from verderer.usecases.context import Context
from verderer.usecases.tracking.caller import Caller, model_to_change, run_to_change, scope_of
from verderer.usecases.tracking.default_experiment import find_experiment
from verderer.usecases.tracking.look_up import experiment_ids, read_model
from verderer.usecases.tracking.moments import new_uid, now_ms

Given = Sequence[tuple[str | None, str | None]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Announced:
    """What a client says about a model that it is about to upload."""

    experiment: str | None = None
    name: str | None = None
    model_type: str | None = None
    source_run: str | None = None
    params: Given = ()
    tags: Given = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class OrderBy:
    """One ordering of a search for models."""

    field: str
    ascending: bool = True
    dataset: str | None = None
    digest: str | None = None


async def create_model(ctx: Context, caller: Caller, announced: Announced) -> LoggedModel:
    """Make a logged model whose files are still to come.

    Raises:
        Invalid: a name, parameter or tag is not acceptable, or the experiment is deleted.
        NotFound, NotAllowed: experiment or run are not the caller's to see, or to write to.
    """
    name = check_model_name(announced.name) if announced.name else made_up_name(ctx.chance())
    params, tags = _params(announced.params), _tags(announced.tags)
    model_type = check_text(announced.model_type, "model_type", MAX_KEY)
    uid = new_uid(ctx)
    async with ctx.db.transaction() as tx:
        experiment = await find_experiment(ctx, tx, caller, announced.experiment)
        require(caller.actor, Action.TRACKING_WRITE, project=experiment.project)
        if experiment.deleted:
            raise Invalid(f"The experiment {experiment.id} must be in the 'active' state.")
        source = None
        if announced.source_run:
            source = await run_to_change(tx, caller, parse_run_uid(announced.source_run))
            if source.project != experiment.project:
                raise no_run(source.uid)
        new = table.NewModel(
            uid=uid,
            experiment=experiment.id,
            project=experiment.project,
            tracked_id=source.id if source else None,
            name=name,
            model_type=model_type,
            now_ms=now_ms(ctx),
        )
        model = await table.add(tx, new)
        await table.set_params(tx, model, params)
        await table.set_tags(tx, model, tags)
        await audit.add(tx, caller.actor, [_entry("created", experiment.project, uid, name)])
    return await read_model(ctx, caller, f"m-{uid}")


async def finalize_model(
    ctx: Context, caller: Caller, model_id: str | None, status: ModelStatus
) -> LoggedModel:
    """Say whether a model's files are there.

    Raises:
        NotFound, NotAllowed: it is not the caller's to see, or to change.
    """
    uid = parse_model_id(model_id)
    async with ctx.db.transaction() as tx:
        model = await model_to_change(tx, caller, uid)
        await table.set_status(tx, model.id, status, now_ms=now_ms(ctx))
        if status is not model.status:
            verb = status.lower()
            await audit.add(tx, caller.actor, [_entry(verb, model.project, uid, model.name)])
    return await read_model(ctx, caller, model_id)


async def delete_model(ctx: Context, caller: Caller, model_id: str | None) -> None:
    """Delete a logged model; its files stay.

    Raises:
        NotFound, NotAllowed: it is not the caller's to see, or to change.
    """
    uid = parse_model_id(model_id)
    async with ctx.db.transaction() as tx:
        model = await model_to_change(tx, caller, uid)
        if await table.delete(tx, model.id, now_ms=now_ms(ctx)):
            await audit.add(tx, caller.actor, [_entry("deleted", model.project, uid, model.name)])


async def set_model_params(
    ctx: Context, caller: Caller, model_id: str | None, params: Given
) -> None:
    """Write parameters over what was there; raises `Invalid`, `NotFound`, `NotAllowed`."""
    uid, checked = parse_model_id(model_id), _params(params)
    async with ctx.db.transaction() as tx:
        await table.set_params(tx, (await model_to_change(tx, caller, uid)).id, checked)


async def set_model_tags(ctx: Context, caller: Caller, model_id: str | None, tags: Given) -> None:
    """Write tags over what was there; raises `Invalid`, `NotFound`, `NotAllowed`."""
    uid, checked = parse_model_id(model_id), _tags(tags)
    async with ctx.db.transaction() as tx:
        await table.set_tags(tx, (await model_to_change(tx, caller, uid)).id, checked)


async def remove_model_tag(ctx: Context, caller: Caller, model_id: str | None, key: str) -> None:
    """Remove one tag; raises `NotFound` when it is not there, and as the others."""
    uid = parse_model_id(model_id)
    async with ctx.db.transaction() as tx:
        model = await model_to_change(tx, caller, uid)
        if not await table.remove_tag(tx, model.id, key):
            raise NotFound(f"No tag with key {key[:MAX_KEY]!a} found for model with ID 'm-{uid}'.")


async def search_models(
    ctx: Context,
    caller: Caller,
    *,
    experiments: Sequence[str],
    filter_text: str | None = None,
    datasets: Sequence[tuple[str, str | None]] = (),
    order_by: Sequence[OrderBy] = (),
    limit: int | None = None,
    token: str | None = None,
) -> tuple[list[LoggedModel], str]:
    """A page of living models, and the token of the next one, empty at the end.

    Raises:
        Invalid: something asked for cannot be read.
    """
    size = min(50 if limit is None or limit <= 0 else limit, PAGE_MODELS)
    if len(datasets) > MAX_DATASETS or not all(name for name, _ in datasets):
        raise Invalid("`dataset_name` in the `datasets` clause must be specified.")
    comparisons, orderings = parse_filter(filter_text, MODELS), _orderings(order_by)
    offset = parse_page_token(token)
    async with ctx.db.reading() as tx:
        scope = await scope_of(tx, caller)
        wanted = views.Search(
            experiments=await experiment_ids(tx, caller, experiments),
            comparisons=comparisons,
            orderings=orderings,
            datasets=datasets,
            offset=offset,
            limit=size + 1,
        )
        found = await views.search(tx, scope, wanted)
        complete = await views.complete(tx, scope, found[:size])
    return complete, page_token(offset + size) if len(found) > size else ""


def _orderings(order_by: Sequence[OrderBy]) -> tuple[Ordering, ...]:
    found = tuple(
        Ordering(
            read_field(one.field, MODELS),
            ascending=one.ascending,
            dataset=one.dataset,
            digest=one.digest,
        )
        for one in order_by
    )
    if any(one.digest and not one.dataset for one in found):
        raise Invalid("`dataset_digest` can only be specified if `dataset_name` is also specified.")
    check_once(found)
    return found


def _params(given: Given) -> Pairs:
    return tuple(
        {
            check_key(key, f"params[{i}].key"): param_value(value, f"params[{i}].value")
            for i, (key, value) in enumerate(given)
        }.items()
    )


def _tags(given: Given) -> Pairs:
    return tuple(
        {
            check_key(key, f"tags[{i}].key"): tag_value(value, f"tags[{i}].value")
            for i, (key, value) in enumerate(given)
        }.items()
    )


def _entry(verb: str, project: int, uid: str, name: str) -> audit.Entry:
    return audit.Entry(
        action=f"logged_model.{verb}",
        project=project,
        object=f"logged_model:m-{uid}",
        detail={"name": name},
    )
