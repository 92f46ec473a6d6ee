"""Record what a run reports: metrics, parameters, tags, inputs and outputs."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from verderer.core.errors import Invalid
from verderer.core.tracking.entities import Dataset, Pairs
from verderer.core.tracking.limits import (
    MAX_DATASET_DIGEST,
    MAX_DATASET_NAME,
    MAX_DATASET_PROFILE,
    MAX_DATASET_SCHEMA,
    MAX_DATASET_SOURCE,
    MAX_DATASETS,
    MAX_ENTITIES,
    MAX_INPUT_TAG_KEY,
    MAX_INPUT_TAG_VALUE,
    MAX_METRICS,
    MAX_PARAMS,
    MAX_TAGS,
)
from verderer.core.tracking.names import (
    check_key,
    check_tag_key,
    check_text,
    no_model,
    param_value,
    parse_model_id,
    parse_run_uid,
    tag_value,
)
from verderer.core.tracking.samples import NO_SAMPLES, Columns, pack
from verderer.store.database import Tx
from verderer.store.tables.tracking import inputs, models, runs, samples
from verderer.store.tables.tracking.models import Measured
from verderer.usecases.context import Context
from verderer.usecases.tracking.caller import Caller, run_to_change
from verderer.usecases.tracking.runs import write_tags

Given = Sequence[tuple[str | None, str | None]]
"""Keys and values as a client sent them."""

_HISTORY_TAG = "mlflow.log-model.history"
_HISTORY_FIELDS = frozenset({"artifact_path", "flavors", "utc_time_created", "run_id"})
_MAX_HISTORY = 1_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Batch:
    """What one request reports."""

    samples: Columns = NO_SAMPLES
    """Times are not negative, and all integers fit in 64 bits: the door saw to that."""
    measured: Mapping[int, tuple[str, str | None, str | None]] | None = None
    """By position in `samples`: the model that it measured, the data set and its digest."""
    params: Given = ()
    tags: Given = ()


async def log_batch(ctx: Context, caller: Caller, uid: str | None, batch: Batch) -> None:
    """Record a batch, all of it or nothing. Repeating it changes nothing.

    Raises:
        Invalid: too much at once, a key or value is not acceptable, a parameter has another
            value already, or the run is deleted.
        NotFound, NotAllowed: the run is not the caller's to see, or to change.
    """
    wanted = parse_run_uid(uid)
    _check_size(batch)
    _check_metric_keys(batch.samples)
    params = _params(batch.params)
    tags = _tags(batch.tags)
    measured = _measured(batch)
    packed = pack(batch.samples)
    async with ctx.db.transaction() as tx:
        run = await run_to_change(tx, caller, wanted)
        if params:
            _check_unchanged(wanted, await runs.add_params(tx, run.id, params))
        await samples.add(tx, run.id, packed)
        if measured:
            await _check_models(tx, run.project, [one.model for one in measured])
            await models.add_metrics(tx, run.id, run.project, measured)
        if tags:
            await write_tags(tx, run, tags)


async def log_inputs(
    ctx: Context,
    caller: Caller,
    uid: str | None,
    *,
    datasets: Sequence[Dataset] = (),
    read: Sequence[str | None] = (),
) -> None:
    """Record which data sets and logged models a run read.

    Raises:
        Invalid: too many at once, something about one is not acceptable, or the run is deleted.
        NotFound, NotAllowed: run or model are not the caller's to see, or the run to change.
    """
    wanted = parse_run_uid(uid)
    if len(datasets) > MAX_DATASETS or len(read) > MAX_DATASETS:
        raise Invalid(f"A request can contain at most {MAX_DATASETS} inputs.")
    for i, dataset in enumerate(datasets):
        _check_dataset(dataset, f"datasets[{i}]")
    uids = [parse_model_id(one) for one in read]
    async with ctx.db.transaction() as tx:
        run = await run_to_change(tx, caller, wanted)
        await inputs.add_datasets(tx, run.id, run.experiment, datasets)
        await _check_models(tx, run.project, uids)
        await inputs.add_models(tx, run.id, run.project, [(one, 0) for one in uids], made=False)


async def log_outputs(
    ctx: Context, caller: Caller, uid: str | None, made: Sequence[tuple[str | None, int]]
) -> None:
    """Record which logged models a run made, and at which step each.

    Raises:
        Invalid: too many at once, or the run is deleted.
        NotFound, NotAllowed: run or model are not the caller's to see, or the run to change.
    """
    wanted = parse_run_uid(uid)
    if len(made) > MAX_DATASETS:
        raise Invalid(f"A request can contain at most {MAX_DATASETS} outputs.")
    checked = [(parse_model_id(model), step) for model, step in made]
    async with ctx.db.transaction() as tx:
        run = await run_to_change(tx, caller, wanted)
        await _check_models(tx, run.project, [model for model, _ in checked])
        await inputs.add_models(tx, run.id, run.project, checked, made=True)


async def log_model(ctx: Context, caller: Caller, uid: str | None, document: str | None) -> None:
    """Add a model's description to the run's history of models, as older clients do.

    Raises:
        Invalid: it is no such description, the history is full, or the run is deleted.
        NotFound, NotAllowed: the run is not the caller's to see, or to change.
    """
    wanted = parse_run_uid(uid)
    described = _described(document)
    async with ctx.db.transaction() as tx:
        run = await run_to_change(tx, caller, wanted, hold=True)
        before = json.loads(await runs.tag(tx, run.id, _HISTORY_TAG) or "[]")
        history = json.dumps([*before, described] if isinstance(before, list) else [described])
        await runs.set_tags(
            tx, run.id, ((_HISTORY_TAG, check_text(history, "model_json", _MAX_HISTORY)),)
        )


def _described(document: str | None) -> dict[str, Any]:
    try:
        described = json.loads(document or "")
    except (ValueError, RecursionError) as e:
        raise Invalid("Malformed model info: 'model_json' is not a valid JSON.") from e
    missing = _HISTORY_FIELDS - set(described if isinstance(described, dict) else ())
    if missing:
        raise Invalid(f"Model json is missing mandatory fields: {sorted(missing)}")
    found: dict[str, Any] = described
    return found


def _check_size(batch: Batch) -> None:
    total = len(batch.samples) + len(batch.params) + len(batch.tags)
    for what, n, limit in (
        ("metrics", len(batch.samples), MAX_METRICS),
        ("params", len(batch.params), MAX_PARAMS),
        ("tags", len(batch.tags), MAX_TAGS),
        ("metrics, params, and tags", total, MAX_ENTITIES),
    ):
        if n > limit:
            raise Invalid(
                f"A batch logging request can contain at most {limit} {what}. Got {n} {what}. "
                f"Please split up {what} across multiple requests and try again."
            )


def _check_metric_keys(given: Columns) -> None:
    for key in dict.fromkeys(given.keys):
        check_key(key, "metrics.name")


def _params(given: Given) -> Pairs:
    checked = {
        check_key(key, f"params[{i}].key"): param_value(value, f"params[{i}].value")
        for i, (key, value) in enumerate(given)
    }
    if len(checked) != len(given):
        raise Invalid(
            "Duplicate parameter keys have been submitted. Please ensure the request contains "
            "only one param value per param key."
        )
    return tuple(checked.items())


def _tags(given: Given) -> Pairs:
    """The last of several with the same key wins."""
    return tuple(
        {
            check_tag_key(key, f"tags[{i}].key"): tag_value(value, f"tags[{i}].value")
            for i, (key, value) in enumerate(given)
        }.items()
    )


def _check_unchanged(uid: str, changed: Sequence[tuple[str, str, str]]) -> None:
    if changed:
        key, old, new = changed[0]
        raise Invalid(
            f"Changing param values is not allowed. Param with key='{key}' was already logged "
            f"with value='{old}' for run ID='{uid}'. Attempted logging new value '{new}'."
        )


def _measured(batch: Batch) -> list[Measured]:
    return [
        Measured(
            model=parse_model_id(model),
            sample=batch.samples[i],
            dataset=check_text(dataset, "dataset_name", MAX_DATASET_NAME) or None,
            digest=check_text(digest, "dataset_digest", MAX_DATASET_DIGEST) or None,
        )
        for i, (model, dataset, digest) in (batch.measured or {}).items()
    ]


async def _check_models(tx: Tx, project: int, uids: Sequence[str]) -> None:
    if uids and (unknown := await inputs.unknown_models(tx, project, uids)):
        raise no_model(f"m-{unknown[0]}")


def _check_dataset(dataset: Dataset, path: str) -> None:
    for value, what, limit in (
        (dataset.name, "name", MAX_DATASET_NAME),
        (dataset.digest, "digest", MAX_DATASET_DIGEST),
        (dataset.source_type, "source_type", MAX_DATASET_NAME),
        (dataset.source, "source", MAX_DATASET_SOURCE),
        (dataset.schema, "schema", MAX_DATASET_SCHEMA),
        (dataset.profile, "profile", MAX_DATASET_PROFILE),
    ):
        check_text(value, f"{path}.dataset.{what}", limit)
    if not dataset.name or not dataset.digest:
        raise Invalid(f"'{path}.dataset' needs a name and a digest")
    for key, value in dataset.tags:
        check_text(key, f"{path}.tags.key", MAX_INPUT_TAG_KEY)
        check_text(value, f"{path}.tags.value", MAX_INPUT_TAG_VALUE)
