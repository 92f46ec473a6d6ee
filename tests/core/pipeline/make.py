"""Builders of pipelines for tests: the shortest text that says what a test is about."""

from __future__ import annotations

from textwrap import dedent

import pytest

from verderer.core.errors import Invalid, Problem
from verderer.core.pipeline.parse import parse
from verderer.core.pipeline.spec import Pipeline, StepSpec

HEAD = "metadata: {name: p}\n"


def pipeline(text: str) -> Pipeline:
    return parse(dedent(text).encode())


def steps(*lines: str, parameters: str = "") -> Pipeline:
    """A pipeline of steps written as flow mappings, one a line."""
    return parse(text_of(*lines, parameters=parameters).encode())


def text_of(*lines: str, parameters: str = "") -> str:
    head = HEAD + (f"parameters: {parameters}\n" if parameters else "")
    return head + "steps:\n" + "".join(f"- {line}\n" for line in lines)


def step(fields: str) -> StepSpec:
    """One step called `s` that runs `e`, with more fields."""
    return steps(f"{{name: s, command: [e], {fields}}}").steps[0]


def problems(text: str | bytes) -> tuple[Problem, ...]:
    with pytest.raises(Invalid) as caught:
        parse(text.encode() if isinstance(text, str) else text)
    assert caught.value.problems
    return caught.value.problems


def problem(text: str | bytes) -> Problem:
    """The one problem of a text that has exactly one."""
    found = problems(text)
    assert len(found) == 1, found
    return found[0]
