"""Expands a pipeline into the instances of its steps and the edges between them.

A step that needs another waits for all instances of it, whatever the two matrices are.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import product

from verderer.core.errors import Invalid
from verderer.core.pipeline.limits import MAX_EDGES, MAX_INSTANCES
from verderer.core.pipeline.parameters import merge_parameters
from verderer.core.pipeline.reading.problems import Wrong
from verderer.core.pipeline.spec import Pipeline, StepSpec


@dataclass(frozen=True, slots=True)
class Instance:
    """One step of a run: a step of the pipeline with one combination of its matrix."""

    index: int
    """Its position in the run, from 0; instances of one step follow each other."""
    name: str
    """`train`, or `train-3` with a matrix, counted from 0; unique, and a DNS-1123 label."""
    template: int
    """Index into `Pipeline.steps`."""
    matrix: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class Expansion:
    """Everything that a submission is made of."""

    parameters: dict[str, str]
    """Every parameter with its value, checked."""
    instances: tuple[Instance, ...]
    edges: tuple[tuple[int, int], ...]
    """(before, after): `after` waits until `before` has ended. Sorted by `after`."""
    spans: dict[str, range]
    """Indexes of the instances of each step, by the step's name."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """An artifact that one instance reads, and where it is put."""

    input: str
    instance: int
    """Index of the instance that made it."""
    output: str
    path: str
    """Relative to the working directory. From a step with a matrix: below the input's own path,
    by the name of the instance."""


def expand(pipeline: Pipeline, parameters: Mapping[str, str]) -> Expansion:
    """Make the instances and edges of one run.

    The parameters do not change what there is: only what `render` and `when` make of it.

    Raises:
        Invalid: a parameter is missing, unknown or not allowed; or the pipeline, which `parse`
            did not make, is larger than the limits.
    """
    merged = merge_parameters(pipeline.parameters, parameters)
    if wrong := too_large(pipeline.steps):
        raise Invalid(wrong.message, hint=wrong.hint)
    instances: list[Instance] = []
    spans: dict[str, range] = {}
    for template, step in enumerate(pipeline.steps):
        first = len(instances)
        if not step.matrix:
            instances.append(Instance(first, step.name, template))
        else:
            _expand_matrix(step, template, instances)
        spans[step.name] = range(first, len(instances))
    edges = tuple(
        (before, after)
        for step in pipeline.steps
        if step.needs
        for after in spans[step.name]
        for need in step.needs
        for before in spans[need]
    )
    return Expansion(merged, tuple(instances), edges, spans)


def sources_of(pipeline: Pipeline, expansion: Expansion, instance: Instance) -> tuple[Source, ...]:
    """The artifacts that `instance` reads, one for each instance that its inputs come from."""
    sources: list[Source] = []
    for spec in pipeline.steps[instance.template].inputs:
        for index in expansion.spans[spec.from_step]:
            made = expansion.instances[index]
            path = f"{spec.path}/{made.name}" if made.matrix else spec.path
            sources.append(
                Source(input=spec.name, instance=index, output=spec.from_output, path=path)
            )
    return tuple(sources)


def too_large(steps: tuple[StepSpec, ...]) -> Wrong | None:
    """Why steps expand to more than a run may have; None when they do not."""
    sizes: dict[str, int] = {}
    total = 0
    for step in steps:
        sizes[step.name] = step.size if step.matrix else 1
        total += sizes[step.name]
    if total > MAX_INSTANCES:
        return Wrong(
            f"the steps expand to {_count(total)}, and {MAX_INSTANCES:,} is the limit",
            "split the work into several pipelines, or loop inside a step",
        )
    edges = sum(
        sizes[step.name] * sum(sizes.get(need, 0) for need in step.needs)
        for step in steps
        if step.needs
    )
    if edges > MAX_EDGES:
        return Wrong(
            f"the needs expand to {edges:,} pairs of steps, and {MAX_EDGES:,} is the limit",
            "put a step that gathers between two steps with a matrix",
        )
    return None


def _expand_matrix(step: StepSpec, template: int, instances: list[Instance]) -> None:
    axes = [name for name, _ in step.matrix]
    first = len(instances)
    for number, values in enumerate(product(*(values for _, values in step.matrix))):
        pairs = tuple(zip(axes, values, strict=True))
        instances.append(Instance(first + number, f"{step.name}-{number}", template, pairs))


def _count(number: int) -> str:
    return f"{number:,}" if number < 10**9 else "more than a billion"
