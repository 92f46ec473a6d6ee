"""The language of searches: what it means, and that nothing else gets through."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from verderer.core.errors import Invalid
from verderer.core.tracking.grammar import (
    EXPERIMENTS,
    LISTS,
    MODELS,
    PRESENCE,
    RUNS,
    Comparison,
    Field,
    Grammar,
    Kind,
    Op,
)
from verderer.core.tracking.ordering import Ordering, parse_ordering
from verderer.core.tracking.search import parse_filter


def one(kind: Kind, key: str, op: Op, value: Any) -> Comparison:
    return Comparison(Field(kind, key), op, value)


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        pytest.param("metrics.acc > 0.9", one(Kind.METRIC, "acc", Op.GT, 0.9), id="a metric"),
        pytest.param("metric.acc<=-1e-3", one(Kind.METRIC, "acc", Op.LE, -0.001), id="no spaces"),
        pytest.param("params.lr = '0.1'", one(Kind.PARAM, "lr", Op.EQ, "0.1"), id="a parameter"),
        pytest.param('param.lr = "0.1"', one(Kind.PARAM, "lr", Op.EQ, "0.1"), id="double quotes"),
        pytest.param("tags.x LIKE '%y%'", one(Kind.TAG, "x", Op.LIKE, "%y%"), id="a pattern"),
        pytest.param("tag.x ilike 'Y'", one(Kind.TAG, "x", Op.ILIKE, "Y"), id="small letters"),
        pytest.param("tags.`a b/c` = ''", one(Kind.TAG, "a b/c", Op.EQ, ""), id="backticks"),
        pytest.param("tags.\"a b\" = ''", one(Kind.TAG, "a b", Op.EQ, ""), id="a quoted key"),
        pytest.param("tags.a.b.c = ''", one(Kind.TAG, "a.b.c", Op.EQ, ""), id="dots in a key"),
        pytest.param("tags.a.`b c` = ''", one(Kind.TAG, "a.b c", Op.EQ, ""), id="half a quote"),
        pytest.param("`tags`.`a` = ''", one(Kind.TAG, "a", Op.EQ, ""), id="all in backticks"),
        pytest.param("tags.x = 'it''s'", one(Kind.TAG, "x", Op.EQ, "it's"), id="a quote in a text"),
        pytest.param("tags.größe = 'ü'", one(Kind.TAG, "größe", Op.EQ, "ü"), id="other letters"),
        pytest.param(
            "tags.mlflow.runName != 'x'",
            one(Kind.TAG, "mlflow.runName", Op.NE, "x"),
            id="a system tag",
        ),
        pytest.param("tags.x IS NULL", one(Kind.TAG, "x", Op.NULL, None), id="is null"),
        pytest.param(
            "params.x is not null", one(Kind.PARAM, "x", Op.NOT_NULL, None), id="is not null"
        ),
        pytest.param(
            "run_id IN ('a', 'b')", one(Kind.ATTRIBUTE, "run_id", Op.IN, ("a", "b")), id="a list"
        ),
        pytest.param(
            "attr.run_id not in ('a',)",
            one(Kind.ATTRIBUTE, "run_id", Op.NOT_IN, ("a",)),
            id="not in a list",
        ),
        pytest.param(
            "attributes.status = 'FAILED'",
            one(Kind.ATTRIBUTE, "status", Op.EQ, "FAILED"),
            id="an attribute",
        ),
        pytest.param(
            "run.created >= 5.0",
            one(Kind.ATTRIBUTE, "start_time", Op.GE, 5),
            id="another name of it",
        ),
        pytest.param(
            "\"Run name\" = 'x'",
            one(Kind.ATTRIBUTE, "run_name", Op.EQ, "x"),
            id="a name with a space",
        ),
        pytest.param(
            "start_time > 9007199254740993",
            one(Kind.ATTRIBUTE, "start_time", Op.GT, 9007199254740993),
            id="more than a float holds",
        ),
        pytest.param(
            "dataset.name LIKE 'x%'", one(Kind.DATASET, "name", Op.LIKE, "x%"), id="a data set"
        ),
        pytest.param(
            "datasets.context IN ('train')",
            one(Kind.DATASET, "context", Op.IN, ("train",)),
            id="its context",
        ),
    ],
)
def test_a_comparison_means(source: str, expected: Comparison) -> None:
    assert parse_filter(source, RUNS) == (expected,)


def test_comparisons_are_joined_by_and() -> None:
    source = "metrics.a > 1 and params.b = 'x' AND tags.c IS NULL"
    assert [c.field.key for c in parse_filter(source, RUNS)] == ["a", "b", "c"]


@pytest.mark.parametrize("source", [None, "", "   "])
def test_nothing_asks_for_everything(source: str | None) -> None:
    assert parse_filter(source, RUNS) == ()


@pytest.mark.parametrize(
    ("source", "why"),
    [
        pytest.param("metrics.acc > 'x'", "Expected numeric", id="a text for a number"),
        pytest.param("params.x = 5", "quoted string", id="a number for a text"),
        pytest.param("params.x > '5'", "Invalid comparator", id="texts have no order"),
        pytest.param("metrics.x LIKE '5'", "Invalid comparator", id="numbers have no pattern"),
        pytest.param("metrics.x IS NULL", "Invalid comparator", id="metrics are always there"),
        pytest.param("tags.x IN ('a')", "Invalid comparator", id="no lists for tags"),
        pytest.param("foo.x = 'a'", "Invalid entity type", id="an unknown kind"),
        pytest.param("foo = 'a'", "Invalid attribute key", id="an unknown attribute"),
        pytest.param("dataset.size = 'a'", "Invalid dataset key", id="an unknown key of data sets"),
        pytest.param("tags. = 'a'", "needs a name", id="no key"),
        pytest.param("tags.x = 'a' OR tags.y = 'b'", "word AND", id="or"),
        pytest.param("tags.x = 'a' tags.y = 'b'", "word AND", id="no and"),
        pytest.param("tags.x = 'a' AND", "filter ends", id="an and too many"),
        pytest.param("AND tags.x = 'a'", "Invalid attribute", id="an and at the beginning"),
        pytest.param("tags.x", "filter ends", id="no comparison"),
        pytest.param("tags.x =", "filter ends", id="no value"),
        pytest.param("tags.x = 'a", "cannot read", id="an open quote"),
        pytest.param("tags.x = 'a'; DROP TABLE x", "cannot read", id="a second statement"),
        pytest.param("tags.x = 'a' -- x", "cannot read", id="a comment"),
        pytest.param("(tags.x = 'a')", "expected a name", id="brackets"),
        pytest.param("run_id IN ()", "quoted value", id="an empty list"),
        pytest.param("run_id IN ('a' 'b')", "expected ,", id="no comma"),
        pytest.param("run_id IN (1, 2)", "quoted value", id="numbers in a list"),
        pytest.param("tags.x LIKE 'a\\'", "backslash", id="a pattern that ends in an escape"),
        pytest.param("tags.x == 'a'", "quoted string", id="a double equals"),
        pytest.param("tags.x = 'a\0'", "NUL", id="a NUL"),
        pytest.param("tags.x = '" + "a" * 20_000 + "'", "at most", id="too long"),
        pytest.param(" AND ".join(["tags.x = ''"] * 101), "at most 100", id="too many"),
    ],
)
def test_what_is_no_filter_is_refused_with_a_reason(source: str, why: str) -> None:
    with pytest.raises(Invalid, match=why):
        parse_filter(source, RUNS)


@pytest.mark.parametrize(
    ("source", "ok"),
    [
        pytest.param("name LIKE 'a%'", True, id="a name"),
        pytest.param("experiment_id IN ('1', '2')", True, id="ids in a list"),
        pytest.param("experiment_id LIKE '1%'", False, id="ids have no pattern"),
        pytest.param("creation_time > 5", True, id="a time"),
        pytest.param("tags.team IS NOT NULL", True, id="a tag"),
        pytest.param("metrics.x > 5", False, id="experiments have no metrics"),
    ],
)
def test_experiments_have_a_grammar_of_their_own(source: str, ok: bool) -> None:
    if ok:
        assert len(parse_filter(source, EXPERIMENTS)) == 1
    else:
        with pytest.raises(Invalid):
            parse_filter(source, EXPERIMENTS)


def test_parameters_of_models_may_be_compared_with_bare_numbers() -> None:
    assert parse_filter("params.lr = 0.10", MODELS)[0].value == "0.10"


@given(st.text(), st.sampled_from([RUNS, EXPERIMENTS, MODELS]))
def test_any_text_is_read_or_refused(source: str, grammar: Grammar) -> None:
    try:
        parse_filter(source, grammar)
    except Invalid:
        pass


_WORDS = st.sampled_from(
    ["metrics.", "params.", "tags.", "attr.", "a", "`b c`", '"d"', "'e'", "1", "-2.5", "=", "!=",
     "<", "LIKE", "IN", "NOT", "IS", "NULL", "(", ")", ",", "AND", ".", " ", "\t", "start_time"]
)  # fmt: skip


@given(st.lists(_WORDS, max_size=20).map("".join))
def test_any_heap_of_its_own_words_is_read_or_refused(source: str) -> None:
    for grammar in (RUNS, EXPERIMENTS, MODELS):
        try:
            parse_filter(source, grammar)
        except Invalid:
            pass
        try:
            parse_ordering([source], grammar)
        except Invalid:
            pass


_KEYS = st.text(st.characters(codec="utf-8", exclude_characters="`\0"), min_size=1, max_size=20)
_TEXTS = st.text(st.characters(codec="utf-8", exclude_characters="\0\\"), max_size=20)


@st.composite
def comparisons(draw: st.DrawFn) -> Comparison:
    kind = draw(st.sampled_from([Kind.METRIC, Kind.PARAM, Kind.TAG, Kind.DATASET]))
    key = draw(st.sampled_from(["name", "digest"]) if kind is Kind.DATASET else _KEYS)
    op = draw(st.sampled_from(sorted(RUNS.ops[kind])))
    value: Any
    if op in PRESENCE:
        value = None
    elif op in LISTS:
        value = tuple(draw(st.lists(_TEXTS, min_size=1, max_size=4)))
    elif kind is Kind.METRIC:
        value = draw(st.floats(allow_nan=False, allow_infinity=False))
    else:
        value = draw(_TEXTS)
    return Comparison(Field(kind, key), op, value)


def written(comparison: Comparison) -> str:
    """What a client would write for it."""

    def quoted(text: str) -> str:
        return "'" + text.replace("'", "''") + "'"

    left = f"{comparison.field.kind}.`{comparison.field.key}` {comparison.op}"
    value = comparison.value
    if value is None:
        return left
    if isinstance(value, tuple):
        return f"{left} ({', '.join(quoted(v) for v in value)})"
    return f"{left} {quoted(value) if isinstance(value, str) else repr(value)}"


@given(st.lists(comparisons(), max_size=5))
def test_what_is_written_is_read_back(wanted: list[Comparison]) -> None:
    source = " AND ".join(written(c) for c in wanted)
    assert parse_filter(source, RUNS) == tuple(wanted)


def test_orderings_are_read_first_to_last() -> None:
    assert parse_ordering(["metrics.acc DESC", "start_time", "tag.`a b` asc"], RUNS) == (
        Ordering(Field(Kind.METRIC, "acc"), ascending=False),
        Ordering(Field(Kind.ATTRIBUTE, "start_time")),
        Ordering(Field(Kind.TAG, "a b")),
    )


@pytest.mark.parametrize(
    "sources",
    [
        pytest.param(["metrics.a up"], id="an unknown direction"),
        pytest.param(["metrics.a DESC x"], id="something behind it"),
        pytest.param(["metrics.a", "metrics.a DESC"], id="the same field twice"),
        pytest.param(["dataset.name"], id="data sets have no order"),
        pytest.param([""], id="nothing"),
        pytest.param([f"metrics.m{i}" for i in range(21)], id="too many"),
    ],
)
def test_what_is_no_ordering_is_refused(sources: list[str]) -> None:
    with pytest.raises(Invalid):
        parse_ordering(sources, RUNS)
