"""Logged models, looked up and searched."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, replace

from verderer.core.model.actor import Scope
from verderer.core.tracking.entities import LoggedModel, ModelSample, ModelStatus
from verderer.core.tracking.grammar import Comparison, Kind
from verderer.core.tracking.ordering import Ordering
from verderer.core.tracking.samples import Sample
from verderer.store.database import Row, Tx
from verderer.store.views.tracked.conditions import (
    Query,
    Tables,
    add_conditions,
    add_order,
    compare,
    exists,
)

_COLUMNS = """
    m.id, replace(m.uid::text, '-', '') AS uid, m.experiment_id AS experiment,
    m.project_id AS project, replace(r.uid::text, '-', '') AS source_run, m.name, m.model_type,
    m.status::text AS status, m.created_ms, m.updated_ms, m.deleted_at IS NOT NULL AS deleted
"""
_FROM = "FROM tracking_models AS m LEFT JOIN tracking_runs AS r ON r.id = m.tracked_id"
_GET = f"""
    SELECT {_COLUMNS} {_FROM} WHERE m.uid = $1::uuid AND ($2 OR m.project_id = ANY($3::int[]))
"""
_PARAMS = """
    SELECT model_id, key, value FROM tracking_model_params
     WHERE model_id = ANY($1::bigint[]) ORDER BY key
"""
_TAGS = """
    SELECT model_id, key, value FROM tracking_model_tags
     WHERE model_id = ANY($1::bigint[]) ORDER BY key
"""
_METRICS = """
    SELECT v.model_id, v.key, v.value, v.at_ms, v.step, replace(r.uid::text, '-', '') AS run,
           v.dataset, v.digest
      FROM tracking_model_metrics AS v JOIN tracking_runs AS r ON r.id = v.tracked_id
     WHERE v.model_id = ANY($1::bigint[]) ORDER BY v.key, v.at_ms, v.step
"""
_SAMPLES = "tracking_model_metrics AS v"
_OF_MODEL = "v.model_id = m.id"
_NEWEST_SAMPLE = "LEFT JOIN LATERAL (SELECT v.value FROM tracking_model_metrics AS v WHERE"
_NEWEST_FIRST = "ORDER BY v.at_ms DESC, v.step DESC, v.tracked_id LIMIT 1)"


@dataclass(frozen=True, slots=True, kw_only=True)
class Search:
    """Which models are wanted, in what order."""

    experiments: Sequence[int]
    comparisons: Sequence[Comparison] = ()
    orderings: Sequence[Ordering] = ()
    datasets: Sequence[tuple[str, str | None]] = ()
    """Names, perhaps with digests: only metrics on one of these count."""
    offset: int = 0
    limit: int = 50


async def get(tx: Tx, scope: Scope, uid: str) -> LoggedModel | None:
    """One model in `scope`, deleted ones too, without what was logged about it."""
    row = await tx.fetchrow(_GET, uid, scope.everything, list(scope.projects))
    return _model(row) if row else None


async def complete(tx: Tx, scope: Scope, models: Sequence[LoggedModel]) -> list[LoggedModel]:
    """The models with their parameters, tags and metrics; nothing of models outside `scope`."""
    ids = [model.id for model in models if scope.sees(model.project)]
    params, tags = await _pairs(tx, _PARAMS, ids), await _pairs(tx, _TAGS, ids)
    metrics: defaultdict[int, list[ModelSample]] = defaultdict(list)
    for row in await tx.fetch(_METRICS, ids):
        sample = Sample(row["key"], row["value"], row["at_ms"], row["step"])
        metrics[row["model_id"]].append(
            ModelSample(sample=sample, run=row["run"], dataset=row["dataset"], digest=row["digest"])
        )
    return [
        replace(
            model,
            params=tuple(params[model.id]),
            tags=tuple(tags[model.id]),
            metrics=tuple(metrics[model.id]),
        )
        for model in models
    ]


async def search(tx: Tx, scope: Scope, wanted: Search) -> list[LoggedModel]:
    """At most `wanted.limit` models in `scope`, the newest first where the order leaves it open."""
    query = Query()
    seen = query.bind(scope.everything, "boolean")
    query.conditions += [
        f"m.experiment_id = ANY({query.bind(list(wanted.experiments), 'bigint[]')})",
        f"({seen} OR m.project_id = ANY({query.bind(list(scope.projects), 'int[]')}))",
        "m.deleted_at IS NULL",
    ]
    _add_filter(query, wanted)
    _add_order(query, wanted.orderings)
    sql = query.statement(_COLUMNS, _FROM, limit=wanted.limit, offset=wanted.offset)
    rows = await tx.fetch(sql, *query.parameters)
    return [_model(row) for row in rows]


def _add_filter(query: Query, wanted: Search) -> None:
    on = _on_datasets(query, wanted.datasets)
    for one in wanted.comparisons:
        if one.field.kind is not Kind.METRIC:
            add_conditions(query, _TABLES, [one])
            continue
        key = f"v.key = {query.bind(one.field.key, 'text')}"
        conditions = [_OF_MODEL, key, compare(query, "v.value", one), *on]
        query.conditions.append(exists(_SAMPLES, conditions))
    if on and not any(one.field.kind is Kind.METRIC for one in wanted.comparisons):
        query.conditions.append(exists(_SAMPLES, [_OF_MODEL, *on]))


def _on_datasets(query: Query, datasets: Sequence[tuple[str, str | None]]) -> list[str]:
    """The condition that a sample was measured on one of them; none for none."""
    choices = []
    for name, digest in datasets:
        choice = f"v.dataset = {query.bind(name, 'text')}"
        if digest:
            choice += f" AND v.digest = {query.bind(digest, 'text')}"
        choices.append(f"({choice})")
    return [f"({' OR '.join(choices)})"] if choices else []


def _add_order(query: Query, orderings: Sequence[Ordering]) -> None:
    for i, one in enumerate(orderings):
        if one.field.kind is not Kind.METRIC:
            add_order(query, _TABLES, [one], natural=())
            continue
        key = f"v.key = {query.bind(one.field.key, 'text')}"
        on = _on_datasets(query, [(one.dataset, one.digest)] if one.dataset else [])
        found = " AND ".join((_OF_MODEL, key, *on))
        query.joins.append(" ".join((_NEWEST_SAMPLE, found, _NEWEST_FIRST, f"AS o{i} ON true")))
        query.order += [
            f"CASE WHEN o{i}.value IS NULL THEN 2 WHEN o{i}.value = 'NaN' THEN 1 ELSE 0 END",
            f"o{i}.value {'ASC' if one.ascending else 'DESC'}",
        ]
    query.order += ["m.created_ms DESC", "m.uid"]


async def _pairs(tx: Tx, sql: str, ids: list[int]) -> defaultdict[int, list[tuple[str, str]]]:
    found: defaultdict[int, list[tuple[str, str]]] = defaultdict(list)
    for model_id, key, value in await tx.fetch(sql, ids):
        found[model_id].append((key, value))
    return found


def _model(row: Row) -> LoggedModel:
    return LoggedModel(**{**row, "status": ModelStatus(row["status"])})


_TABLES = Tables(
    owner="m.id",
    link="model_id",
    attributes={
        "name": "m.name",
        "model_id": "('m-' || replace(m.uid::text, '-', ''))",
        "model_type": "m.model_type",
        "status": "m.status::text",
        "source_run_id": "replace(r.uid::text, '-', '')",
        "creation_timestamp": "m.created_ms",
        "last_updated_timestamp": "m.updated_ms",
    },
    params="tracking_model_params",
    tags="tracking_model_tags",
)
