"""What can be searched by: for runs, experiments and logged models, each name and comparison."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum


class Kind(StrEnum):
    """What a name belongs to."""

    ATTRIBUTE = "attribute"
    METRIC = "metric"
    PARAM = "parameter"
    TAG = "tag"
    DATASET = "dataset"


class Op(StrEnum):
    """How two things are compared."""

    EQ = "="
    NE = "!="
    LT = "<"
    LE = "<="
    GT = ">"
    GE = ">="
    LIKE = "LIKE"
    ILIKE = "ILIKE"
    IN = "IN"
    NOT_IN = "NOT IN"
    NULL = "IS NULL"
    NOT_NULL = "IS NOT NULL"


Value = str | int | float | tuple[str, ...] | None

NUMERIC = frozenset({Op.EQ, Op.NE, Op.LT, Op.LE, Op.GT, Op.GE})
TEXTUAL = frozenset({Op.EQ, Op.NE, Op.LIKE, Op.ILIKE})
LISTS = frozenset({Op.IN, Op.NOT_IN})
PRESENCE = frozenset({Op.NULL, Op.NOT_NULL})

KINDS: Mapping[str, Kind] = {
    "attribute": Kind.ATTRIBUTE,
    "attributes": Kind.ATTRIBUTE,
    "attr": Kind.ATTRIBUTE,
    "run": Kind.ATTRIBUTE,
    "metric": Kind.METRIC,
    "metrics": Kind.METRIC,
    "parameter": Kind.PARAM,
    "parameters": Kind.PARAM,
    "param": Kind.PARAM,
    "params": Kind.PARAM,
    "tag": Kind.TAG,
    "tags": Kind.TAG,
    "dataset": Kind.DATASET,
    "datasets": Kind.DATASET,
}


@dataclass(frozen=True, slots=True)
class Field:
    """What a name means."""

    kind: Kind
    key: str
    """For attributes one of the grammar's canonical names."""


@dataclass(frozen=True, slots=True)
class Comparison:
    """One condition."""

    field: Field
    op: Op
    value: Value
    """None for `IS NULL` and `IS NOT NULL`; a tuple for lists; an int or a float for numbers."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Grammar:
    """What can be asked about one sort of thing."""

    attributes: Mapping[str, str]
    """Every spelling, and the canonical name that it stands for."""
    numeric: frozenset[str]
    """Canonical names of attributes that are numbers."""
    ops: Mapping[Kind, frozenset[Op]]
    """For each kind that may be used; attributes are given their own below."""
    orderable: frozenset[Kind]
    bare_numbers: bool = False
    """Whether a parameter may be compared with a number that has no quotes."""


RUNS = Grammar(
    attributes={
        **{name: name for name in ("run_id", "run_name", "user_id", "status", "artifact_uri")},
        **dict.fromkeys(("run name", "Run name", "Run Name"), "run_name"),
        **dict.fromkeys(("start_time", "created", "Created"), "start_time"),
        "end_time": "end_time",
    },
    numeric=frozenset({"start_time", "end_time"}),
    ops={
        Kind.ATTRIBUTE: TEXTUAL | LISTS,
        Kind.METRIC: NUMERIC,
        Kind.PARAM: TEXTUAL | PRESENCE,
        Kind.TAG: TEXTUAL | PRESENCE,
        Kind.DATASET: TEXTUAL | LISTS,
    },
    orderable=frozenset({Kind.ATTRIBUTE, Kind.METRIC, Kind.PARAM, Kind.TAG}),
)

EXPERIMENTS = Grammar(
    attributes={
        name: name for name in ("name", "experiment_id", "creation_time", "last_update_time")
    },
    numeric=frozenset({"creation_time", "last_update_time"}),
    ops={Kind.ATTRIBUTE: TEXTUAL | LISTS, Kind.TAG: TEXTUAL | PRESENCE},
    orderable=frozenset({Kind.ATTRIBUTE}),
)

MODELS = Grammar(
    attributes={
        **{name: name for name in ("name", "model_id", "model_type", "status", "source_run_id")},
        **dict.fromkeys(
            ("creation_timestamp", "creation_time", "creation_timestamp_ms"), "creation_timestamp"
        ),
        **dict.fromkeys(
            ("last_updated_timestamp", "last_updated_time", "last_updated_timestamp_ms"),
            "last_updated_timestamp",
        ),
    },
    numeric=frozenset({"creation_timestamp", "last_updated_timestamp"}),
    ops={
        Kind.ATTRIBUTE: TEXTUAL | LISTS,
        Kind.METRIC: NUMERIC,
        Kind.PARAM: TEXTUAL | LISTS,
        Kind.TAG: TEXTUAL | LISTS,
    },
    orderable=frozenset({Kind.ATTRIBUTE, Kind.METRIC}),
    bare_numbers=True,
)

DATASET_KEYS = frozenset({"name", "digest", "context"})
