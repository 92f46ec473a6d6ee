"""Turns comparisons and orderings into SQL; every value becomes a parameter, never text."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from verderer.core.errors import Invalid
from verderer.core.tracking.grammar import LISTS, PRESENCE, Comparison, Field, Kind, Op
from verderer.core.tracking.ordering import Ordering

_SIGNS: Mapping[Op, str] = {
    Op.EQ: "=",
    Op.NE: "<>",
    Op.LT: "<",
    Op.LE: "<=",
    Op.GT: ">",
    Op.GE: ">=",
    Op.LIKE: "LIKE",
    Op.ILIKE: "ILIKE",
}


@dataclass(slots=True)
class Query:
    """A statement in the making: its parameters, joins, conditions and order."""

    parameters: list[object] = field(default_factory=list)
    joins: list[str] = field(default_factory=list)
    conditions: list[str] = field(default_factory=list)
    order: list[str] = field(default_factory=list)

    def bind(self, value: object, sql_type: str) -> str:
        """Add a parameter and return how the statement names it."""
        self.parameters.append(value)
        return f"${len(self.parameters)}::{sql_type}"

    def statement(self, columns: str, source: str, *, limit: int, offset: int) -> str:
        """The whole statement. Its pieces are our own constants and `$1`, `$2`, …"""
        return " ".join(
            (
                "SELECT",
                columns,
                source,
                *self.joins,
                "WHERE",
                " AND ".join(self.conditions),
                "ORDER BY",
                ", ".join(self.order),
                "LIMIT",
                self.bind(limit, "bigint"),
                "OFFSET",
                self.bind(offset, "bigint"),
            )
        )


def exists(source: str, conditions: Sequence[str]) -> str:
    """Whether `source`, our own SQL, has a row for which all conditions hold."""
    return " ".join(("EXISTS (SELECT FROM", source, "WHERE", " AND ".join(conditions) + ")"))


@dataclass(frozen=True, slots=True, kw_only=True)
class Tables:
    """Where a sort of thing keeps what it can be searched by; all of it our own SQL."""

    owner: str
    """The thing's id, as the statement names it: `r.id`."""
    link: str
    """The column of the tables below that holds it."""
    attributes: Mapping[str, str]
    """Canonical names and the SQL of each."""
    params: str = ""
    tags: str = ""
    metrics: str = ""
    special: Mapping[Kind, Callable[[Query, Comparison], str]] = field(default_factory=dict)
    """Conditions that are made otherwise."""


def add_conditions(query: Query, tables: Tables, comparisons: Sequence[Comparison]) -> None:
    """Narrow the query to what all comparisons hold for."""
    for comparison in comparisons:
        query.conditions.append(_condition(query, tables, comparison))


def _condition(query: Query, tables: Tables, comparison: Comparison) -> str:
    kind = comparison.field.kind
    if special := tables.special.get(kind):
        return special(query, comparison)
    if kind is Kind.ATTRIBUTE:
        return compare(query, tables.attributes[comparison.field.key], comparison)
    source = f"{_table(tables, kind)} AS v"
    conditions = [
        f"v.{tables.link} = {tables.owner}",
        f"v.key = {query.bind(comparison.field.key, 'text')}",
    ]
    if comparison.op is Op.NULL:
        return f"NOT {exists(source, conditions)}"
    if comparison.op not in PRESENCE:
        conditions.append(compare(query, "v.value", comparison))
    return exists(source, conditions)


def compare(query: Query, expression: str, comparison: Comparison) -> str:
    """One comparison of our own expression with a client's value."""
    value, op = comparison.value, comparison.op
    if op in LISTS:
        values = query.bind(list(value) if isinstance(value, tuple) else [value], "text[]")
        return f"{expression} = ANY({values})" if op is Op.IN else f"{expression} <> ALL({values})"
    if isinstance(value, str):
        return f"{expression} {_SIGNS[op]} {query.bind(value, 'text')}"
    if isinstance(value, int):
        return f"{expression} {_SIGNS[op]} {query.bind(value, 'bigint')}"
    bound = query.bind(value, "float8")
    if comparison.field.kind is Kind.METRIC and op is not Op.NE:
        # PostgreSQL sorts NaN above every number; a client expects that it compares with none.
        return f"({expression} {_SIGNS[op]} {bound} AND {expression} <> 'NaN')"
    return f"{expression} {_SIGNS[op]} {bound}"


def add_order(
    query: Query, tables: Tables, orderings: Sequence[Ordering], *, natural: Sequence[str]
) -> None:
    """Sort the query; what lacks a value comes last, NaN before it; ties as `natural` says."""
    for i, ordering in enumerate(orderings):
        expression = _sorted_by(query, tables, ordering.field, f"o{i}")
        if ordering.field.kind is Kind.METRIC:
            query.order.append(
                f"CASE WHEN {expression} IS NULL THEN 2 WHEN {expression} = 'NaN' THEN 1 ELSE 0 END"
            )
        else:
            query.order.append(f"{expression} IS NULL")
        query.order.append(f"{expression} {'ASC' if ordering.ascending else 'DESC'}")
    query.order.extend(natural)


def _sorted_by(query: Query, tables: Tables, wanted: Field, alias: str) -> str:
    if wanted.kind is Kind.ATTRIBUTE:
        return tables.attributes[wanted.key]
    key = query.bind(wanted.key, "text")
    query.joins.append(
        f"LEFT JOIN {_table(tables, wanted.kind)} AS {alias} "
        f"ON {alias}.{tables.link} = {tables.owner} AND {alias}.key = {key}"
    )
    return f"{alias}.value"


def _table(tables: Tables, kind: Kind) -> str:
    table = {Kind.PARAM: tables.params, Kind.TAG: tables.tags, Kind.METRIC: tables.metrics}.get(
        kind, ""
    )
    if not table:
        raise Invalid(f"one cannot search by a {kind} here")
    return table
