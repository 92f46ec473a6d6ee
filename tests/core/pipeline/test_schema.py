"""The published schema, and that it and the parser agree."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from tests.core.pipeline.make import problems
from verderer.core.errors import Invalid
from verderer.core.pipeline.expand import expand
from verderer.core.pipeline.parse import parse
from verderer.core.pipeline.schema import as_json, pipeline_schema

ROOT = Path(__file__).parents[3]
PUBLISHED = ROOT / "docs/reference/pipeline.schema.json"
EXAMPLES = sorted((ROOT / "examples/pipelines").glob("*.yaml"))
VALIDATOR = Draft202012Validator(pipeline_schema())
REGENERATE = (
    'python -c "from verderer.core.pipeline.schema import as_json; print(as_json(), end=str())" '
    "> docs/reference/pipeline.schema.json"
)


def test_the_published_schema_is_this_one() -> None:
    assert PUBLISHED.read_text() == as_json(), f"regenerate it: {REGENERATE}"


def test_it_is_a_schema() -> None:
    Draft202012Validator.check_schema(pipeline_schema())


def test_every_field_has_a_description() -> None:
    def fields(schema: dict[str, Any]) -> list[tuple[str, dict[str, Any]]]:
        found = list(schema.get("properties", {}).items())
        inner = [field for _, field in found]
        inner += [schema[k] for k in ("items", "additionalProperties") if schema.get(k)]
        inner += schema.get("anyOf", [])
        return found + [pair for schema in inner for pair in fields(schema)]

    described = {name: field["description"] for name, field in fields(pipeline_schema())}
    assert {"metadata", "steps", "lr", "nodes", "from", "count"} - set(described) == {"lr"}
    assert all(text.endswith(".") for text in described.values())


def test_there_are_examples() -> None:
    assert len(EXAMPLES) >= 4


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_examples_are_valid_by_parser_and_schema(path: Path) -> None:
    made = parse(path.read_bytes())
    expand(made, {})
    VALIDATOR.validate(yaml.safe_load(path.read_text()))


NAMES = st.sampled_from(["a", "b-1", "train", "A", "x_y", "-", "", "a" * 64, "é", "1", "a.b"])
SCALARS = st.one_of(
    NAMES,
    st.sampled_from(["500m", "2Gi", "10m", "1d", "x/y", "../x", "/x", "true", "a.x", "0", "-1"]),
    st.integers(-2, 12),
    st.floats(allow_nan=False, allow_infinity=False),
    st.booleans(),
    st.none(),
)
ANYTHING = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAMES, inner, max_size=3),
    max_leaves=5,
)


def of_schema(schema: dict[str, Any]) -> st.SearchStrategy[Any]:
    """Values that mostly have the shape of `schema`, and now and then something else."""
    if "anyOf" in schema:
        return st.one_of(*map(of_schema, schema["anyOf"]))
    if "enum" in schema:
        return st.sampled_from(schema["enum"]) | SCALARS
    if schema.get("type") == "array":
        return st.lists(of_schema(schema["items"]), max_size=3)
    if schema.get("type") != "object":
        return SCALARS
    if "properties" not in schema:
        keys = NAMES | st.sampled_from(["cpu", "memory", "nvidia.com/gpu", "gpu"])
        return st.dictionaries(keys, of_schema(schema["additionalProperties"]), max_size=2)
    fields = {name: of_schema(field) for name, field in schema["properties"].items()}
    required = {name: fields.pop(name) for name in schema.get("required", ())}
    return st.fixed_dictionaries(required, optional=fields)


# Most of a generated document must be right, or nothing is ever accepted.
STEP_FIELDS = pipeline_schema()["properties"]["steps"]["items"]["properties"]
STEPS = st.fixed_dictionaries(
    {"name": st.sampled_from(["a", "b", "c"]), "command": st.just(["e"])},
    optional={
        name: of_schema(field)
        for name, field in STEP_FIELDS.items()
        if name not in ("name", "command", "script")
    },
)
DOCUMENTS = st.fixed_dictionaries(
    {
        "metadata": of_schema(pipeline_schema()["properties"]["metadata"]) | st.just({"name": "p"}),
        "steps": st.lists(STEPS, min_size=1, max_size=2),
    },
    optional={"parameters": of_schema(pipeline_schema()["properties"]["parameters"])},
)
FIELDS = st.sampled_from(sorted(STEP_FIELDS))


def accepted(document: Any) -> bool:
    try:
        parse(json.dumps(document, ensure_ascii=False).encode())
    except Invalid:
        return False
    return True


@settings(max_examples=300)
@given(DOCUMENTS | ANYTHING)
def test_what_the_parser_accepts_the_schema_accepts(document: Any) -> None:
    if accepted(document):
        VALIDATOR.validate(document)


@settings(max_examples=500)
@given(field=FIELDS, data=st.data())
def test_one_field_at_a_time_the_parser_accepts_no_more_than_the_schema(
    field: str, data: st.DataObject
) -> None:
    value = data.draw(of_schema(STEP_FIELDS[field]) | ANYTHING)
    document = {"metadata": {"name": "p"}, "steps": [{"name": "s", "command": ["e"], field: value}]}
    if accepted(document):
        VALIDATOR.validate(document)


STRICT = ("nodes", "timeout", "grace", "retries", "outputs", "env", "image", "args", "resources")


@settings(max_examples=400)
@given(field=st.sampled_from(STRICT), data=st.data())
def test_what_the_schema_accepts_is_refused_for_a_reason_it_cannot_say(
    field: str, data: st.DataObject
) -> None:
    value = data.draw(of_schema(STEP_FIELDS[field]))
    document = {"metadata": {"name": "p"}, "steps": [{"name": "s", "command": ["e"], field: value}]}
    if not VALIDATOR.is_valid(document) or accepted(document):
        return
    beyond = (
        "more than the limit",
        "is not the limit",
        "share one environment variable",
        "handed out whole",
        "whole number of bytes",
        "finer than 1m",
        "no node has",
        "more than 0 of",
        "more than can be counted",
        "is not a quantity",  # a number of more digits than anyone means
        "found `1.0`",  # JSON Schema takes 1.0 for an integer
        "whole number from",
        "a time such as",
        "a time from",
        "in a circle",
    )
    for found in problems(json.dumps(document, ensure_ascii=False)):
        assert any(words in found.message for words in beyond), found
