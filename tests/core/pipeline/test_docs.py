"""The guide is tested: its examples are accepted, its numbers true, and no field is missing."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from verderer.core.pipeline import limits, syntax
from verderer.core.pipeline.expand import expand
from verderer.core.pipeline.fields import (
    INPUT,
    METADATA,
    OUTPUT,
    PARAMETER,
    PIPELINE,
    RESOURCES,
    RETRIES,
    STEP,
)
from verderer.core.pipeline.parse import parse
from verderer.core.pipeline.references import variable_for

GUIDE = (Path(__file__).parents[3] / "docs/pipeline.md").read_text()
BLOCKS = re.findall(r"```yaml\n(.*?)```", GUIDE, re.DOTALL)


@pytest.mark.parametrize("block", BLOCKS, ids=lambda block: re.findall(r"name: ([\w-]+)", block)[0])
def test_every_example_of_the_guide_is_accepted(block: str) -> None:
    made = parse(block.encode())
    expand(made, {p.name: "x" for p in made.parameters if p.default is None})


@pytest.mark.parametrize(
    "record", [PIPELINE, METADATA, PARAMETER, STEP, RESOURCES, INPUT, OUTPUT, RETRIES]
)
def test_every_field_is_in_the_guide(record: object) -> None:
    for field in record.fields:  # type: ignore[attr-defined]
        assert re.search(rf"\b{field.name}\b", GUIDE), field.name


def test_the_limits_of_the_guide_are_the_limits() -> None:
    table = GUIDE[GUIDE.index("## Limits") :]
    numbers = {int(n.replace(",", "")) for n in re.findall(r"\b[\d,]+\b", table)}
    assert numbers == {
        limits.MAX_BYTES // 2**20,
        8,  # UTF-8
        limits.MAX_DEPTH,
        limits.MAX_VALUES,
        limits.MAX_INSTANCES,
        limits.MAX_EDGES,
        limits.MAX_TEXT,
        limits.MAX_REFERENCES,
        syntax.MAX_LENGTH,
        syntax.MAX_LEVELS,
        limits.MAX_RETRIES,
        limits.MAX_SECONDS // 86_400,
    }


def test_the_variables_of_the_guide_are_the_ones_set() -> None:
    rows = re.findall(r"^\| (.*`\$\{\{.*) \| .* \| (.*) \|$", GUIDE, re.MULTILINE)
    for references, variables in rows:
        names = re.findall(r"\$\{\{ (\S+) \}\}", references)
        assert [variable_for(name) for name in names] == re.findall(r"VERDERER_\w+", variables)
    assert len(rows) == 6
