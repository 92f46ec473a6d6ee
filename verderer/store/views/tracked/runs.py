"""Tracked runs with what they reported, looked up and searched."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

from verderer.core.model.actor import Scope
from verderer.core.tracking.artifact_path import SCHEME
from verderer.core.tracking.entities import Dataset, Stage, TrackedData, TrackedRun
from verderer.core.tracking.grammar import Comparison, Kind
from verderer.core.tracking.ordering import Ordering
from verderer.core.tracking.samples import Sample
from verderer.store.database import Tx
from verderer.store.tables.tracking.runs import COLUMNS, tracked
from verderer.store.views.tracked.conditions import (
    Query,
    Tables,
    add_conditions,
    add_order,
    compare,
    exists,
)
from verderer.store.views.tracked.experiments import STAGES

_GET = f"""
    SELECT {COLUMNS} FROM tracking_runs AS r
     WHERE r.uid = ANY($1::text[]::uuid[]) AND ($2 OR r.project_id = ANY($3::int[]))
"""  # noqa: S608 - our own list of columns
_METRICS = """
    SELECT tracked_id, key, value, at_ms, step FROM tracking_series
     WHERE tracked_id = ANY($1::bigint[]) ORDER BY key
"""
_PARAMS = """
    SELECT tracked_id, key, value FROM tracking_params
     WHERE tracked_id = ANY($1::bigint[]) ORDER BY key
"""
_TAGS = """
    SELECT tracked_id, key, value FROM tracking_tags
     WHERE tracked_id = ANY($1::bigint[]) ORDER BY key
"""
_DATASETS = """
    SELECT i.tracked_id, d.name, d.digest, d.source_type, d.source, d.schema, d.profile, i.tags
      FROM tracking_inputs AS i JOIN tracking_datasets AS d ON d.id = i.dataset_id
     WHERE i.tracked_id = ANY($1::bigint[]) ORDER BY d.id
"""
_MODELS = """
    SELECT x.tracked_id, replace(m.uid::text, '-', '') AS uid, x.made, x.step
      FROM tracking_run_models AS x JOIN tracking_models AS m ON m.id = x.model_id
     WHERE x.tracked_id = ANY($1::bigint[]) ORDER BY x.step, m.id
"""
_SUMMARIES = """
    SELECT DISTINCT d.experiment_id, d.name, d.digest, i.context
      FROM tracking_datasets AS d
      JOIN tracking_experiments AS e ON e.id = d.experiment_id
      JOIN tracking_inputs AS i ON i.dataset_id = d.id
     WHERE d.experiment_id = ANY($1::bigint[]) AND ($2 OR e.project_id = ANY($3::int[]))
     LIMIT $4
"""
_INPUTS = "tracking_inputs AS i JOIN tracking_datasets AS d ON d.id = i.dataset_id"
_FROM = "FROM tracking_runs AS r"
_UID = "replace(r.uid::text, '-', '')"


@dataclass(frozen=True, slots=True, kw_only=True)
class Search:
    """Which runs are wanted, in what order."""

    experiments: Sequence[int]
    comparisons: Sequence[Comparison] = ()
    orderings: Sequence[Ordering] = ()
    stage: Stage = Stage.ACTIVE
    offset: int = 0
    limit: int = 1_000


@dataclass(frozen=True, slots=True)
class DatasetSummary:
    """A data set that runs of an experiment read, and what for."""

    experiment: int
    name: str
    digest: str
    context: str | None


async def get(tx: Tx, scope: Scope, uid: str) -> TrackedRun | None:
    """One run in `scope`, deleted ones too."""
    found = await get_many(tx, scope, [uid])
    return found[0] if found else None


async def get_many(tx: Tx, scope: Scope, uids: Sequence[str]) -> list[TrackedRun]:
    """Those of `uids` that are in `scope`, in no particular order."""
    rows = await tx.fetch(_GET, list(uids), scope.everything, list(scope.projects))
    return [tracked(row) for row in rows]


async def search(tx: Tx, scope: Scope, wanted: Search) -> list[TrackedRun]:
    """At most `wanted.limit` runs in `scope`; the newest first where the order leaves it open."""
    query = Query()
    seen = query.bind(scope.everything, "boolean")
    query.conditions += [
        f"r.experiment_id = ANY({query.bind(list(wanted.experiments), 'bigint[]')})",
        f"({seen} OR r.project_id = ANY({query.bind(list(scope.projects), 'int[]')}))",
    ]
    if stage := STAGES.get(wanted.stage):
        query.conditions.append(stage.format("r"))
    add_conditions(query, _TABLES, wanted.comparisons)
    by_start = any(one.field.key == "start_time" for one in wanted.orderings)
    natural = ["r.uid"] if by_start else ["r.start_ms DESC", "r.uid"]
    add_order(query, _TABLES, wanted.orderings, natural=natural)
    sql = query.statement(COLUMNS, _FROM, limit=wanted.limit, offset=wanted.offset)
    rows = await tx.fetch(sql, *query.parameters)
    return [tracked(row) for row in rows]


async def reported(tx: Tx, scope: Scope, runs: Sequence[TrackedRun]) -> list[TrackedData]:
    """What each of the runs reported, in their order; nothing of runs outside `scope`."""
    ids = [run.id for run in runs if scope.sees(run.project)]
    metrics: defaultdict[int, list[Sample]] = defaultdict(list)
    for row in await tx.fetch(_METRICS, ids):
        metrics[row["tracked_id"]].append(
            Sample(row["key"], row["value"], row["at_ms"], row["step"])
        )
    params = await _pairs(tx, _PARAMS, ids)
    tags = await _pairs(tx, _TAGS, ids)
    datasets = await _datasets(tx, ids)
    read, made = await _models(tx, ids)
    return [
        TrackedData(
            metrics=tuple(metrics[run.id]),
            params=tuple(params[run.id]),
            tags=tuple(tags[run.id]),
            datasets=tuple(datasets[run.id]),
            models_read=tuple(read[run.id]),
            models_made=tuple(made[run.id]),
        )
        for run in runs
    ]


async def dataset_summaries(
    tx: Tx, scope: Scope, experiments: Sequence[int], *, limit: int
) -> list[DatasetSummary]:
    """Data sets that runs of the experiments read, each context once."""
    rows = await tx.fetch(
        _SUMMARIES, list(experiments), scope.everything, list(scope.projects), limit
    )
    return [DatasetSummary(*row.values()) for row in rows]


async def _pairs(tx: Tx, sql: str, ids: list[int]) -> defaultdict[int, list[tuple[str, str]]]:
    found: defaultdict[int, list[tuple[str, str]]] = defaultdict(list)
    for tracked_id, key, value in await tx.fetch(sql, ids):
        found[tracked_id].append((key, value))
    return found


async def _datasets(tx: Tx, ids: list[int]) -> defaultdict[int, list[Dataset]]:
    found: defaultdict[int, list[Dataset]] = defaultdict(list)
    for row in await tx.fetch(_DATASETS, ids):
        fields = dict(row)
        tracked_id = fields.pop("tracked_id")
        fields["tags"] = tuple((key, value) for key, value in fields["tags"])
        found[tracked_id].append(Dataset(**fields))
    return found


async def _models(
    tx: Tx, ids: list[int]
) -> tuple[defaultdict[int, list[str]], defaultdict[int, list[tuple[str, int]]]]:
    read: defaultdict[int, list[str]] = defaultdict(list)
    made: defaultdict[int, list[tuple[str, int]]] = defaultdict(list)
    for row in await tx.fetch(_MODELS, ids):
        if row["made"]:
            made[row["tracked_id"]].append((row["uid"], row["step"]))
        else:
            read[row["tracked_id"]].append(row["uid"])
    return read, made


def _on_dataset(query: Query, comparison: Comparison) -> str:
    expression = "i.context" if comparison.field.key == "context" else f"d.{comparison.field.key}"
    conditions = ["i.tracked_id = r.id", compare(query, expression, comparison)]
    return exists(_INPUTS, conditions)


_TABLES = Tables(
    owner="r.id",
    link="tracked_id",
    attributes={
        "run_id": _UID,
        "run_name": "r.name",
        "user_id": "r.user_name",
        "status": "r.status::text",
        "artifact_uri": f"('{SCHEME}' || r.experiment_id || '/' || {_UID} || '/artifacts')",
        "start_time": "r.start_ms",
        "end_time": "r.end_ms",
    },
    params="tracking_params",
    tags="tracking_tags",
    metrics="tracking_series",
    special={Kind.DATASET: _on_dataset},
)
