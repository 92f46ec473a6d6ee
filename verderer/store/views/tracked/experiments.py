"""Experiments, as tracking clients look them up and search them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from verderer.core.model.actor import Scope
from verderer.core.tracking.entities import Experiment, Stage
from verderer.core.tracking.grammar import Comparison, Op
from verderer.core.tracking.names import parse_experiment_id
from verderer.core.tracking.ordering import Ordering
from verderer.store.database import Row, Tx
from verderer.store.views.tracked.conditions import (
    Query,
    Tables,
    add_conditions,
    add_order,
)

_COLUMNS = """
    e.id, e.project_id AS project, p.name AS project_name, e.name, e.created_ms, e.updated_ms,
    e.deleted_at IS NOT NULL AS deleted,
    ARRAY(SELECT ARRAY[t.key, t.value] FROM tracking_experiment_tags AS t
           WHERE t.experiment_id = e.id ORDER BY t.key) AS tags
"""
_FROM = "FROM tracking_experiments AS e JOIN projects AS p ON p.id = e.project_id"
_GET = f"""
    SELECT {_COLUMNS} {_FROM} WHERE e.id = $1 AND ($2 OR e.project_id = ANY($3::int[]))
"""
_LOCK = f"{_GET} FOR NO KEY UPDATE OF e"
_NAMED = f"""
    SELECT {_COLUMNS} {_FROM}
     WHERE e.name = $1 AND ($2 OR e.project_id = ANY($3::int[])) ORDER BY e.id LIMIT 2
"""

STAGES = {Stage.ACTIVE: "{}.deleted_at IS NULL", Stage.DELETED: "{}.deleted_at IS NOT NULL"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Search:
    """Which experiments are wanted, in what order."""

    comparisons: Sequence[Comparison] = ()
    orderings: Sequence[Ordering] = ()
    stage: Stage = Stage.ACTIVE
    offset: int = 0
    limit: int = 1_000
    with_project: bool = False
    """Whether names read `project/name`, for readers of several projects."""


async def get(tx: Tx, scope: Scope, experiment: int) -> Experiment | None:
    """One experiment in `scope`, deleted ones too."""
    row = await tx.fetchrow(_GET, experiment, scope.everything, list(scope.projects))
    return _experiment(row) if row else None


async def hold(tx: Tx, scope: Scope, experiment: int) -> Experiment | None:
    """The same, and nobody else changes it until the end of the transaction."""
    row = await tx.fetchrow(_LOCK, experiment, scope.everything, list(scope.projects))
    return _experiment(row) if row else None


async def named(tx: Tx, scope: Scope, name: str) -> list[Experiment]:
    """Those in `scope` of this name, at most two: more than one is already too many."""
    rows = await tx.fetch(_NAMED, name, scope.everything, list(scope.projects))
    return [_experiment(row) for row in rows]


async def search(tx: Tx, scope: Scope, wanted: Search) -> list[Experiment]:
    """At most `wanted.limit` experiments in `scope`."""
    query = Query()
    seen = query.bind(scope.everything, "boolean")
    query.conditions.append(
        f"({seen} OR e.project_id = ANY({query.bind(list(scope.projects), 'int[]')}))"
    )
    if stage := STAGES.get(wanted.stage):
        query.conditions.append(stage.format("e"))
    tables = _tables(with_project=wanted.with_project)
    for one in wanted.comparisons:
        if one.field.key == "experiment_id":
            query.conditions.append(_by_id(query, one))
        else:
            add_conditions(query, tables, [one])
    natural = [] if wanted.orderings else ["e.created_ms DESC"]
    add_order(query, tables, wanted.orderings, natural=[*natural, "e.id"])
    sql = query.statement(_COLUMNS, _FROM, limit=wanted.limit, offset=wanted.offset)
    rows = await tx.fetch(sql, *query.parameters)
    return [_experiment(row) for row in rows]


def _tables(*, with_project: bool) -> Tables:
    return Tables(
        owner="e.id",
        link="experiment_id",
        attributes={
            "name": "(p.name || '/' || e.name)" if with_project else "e.name",
            "experiment_id": "e.id",
            "creation_time": "e.created_ms",
            "last_update_time": "e.updated_ms",
        },
        tags="tracking_experiment_tags",
    )


def _by_id(query: Query, comparison: Comparison) -> str:
    """Ids are numbers for us and texts for clients."""
    value = comparison.value
    texts = value if isinstance(value, tuple) else (str(value),)
    ids = query.bind([parse_experiment_id(text) for text in texts], "bigint[]")
    return f"e.id = ANY({ids})" if comparison.op in (Op.EQ, Op.IN) else f"e.id <> ALL({ids})"


def _experiment(row: Row) -> Experiment:
    return Experiment(**{**row, "tags": tuple((key, value) for key, value in row["tags"])})
