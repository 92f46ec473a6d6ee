"""Checks a pipeline and writes the result as a document: for the server, and for clients alone."""

from __future__ import annotations

from collections.abc import Mapping

from verderer.core.errors import Invalid, Problem
from verderer.core.model.resources import format_quantity
from verderer.core.pipeline.parameters import merge_parameters
from verderer.core.pipeline.parse import parse
from verderer.core.pipeline.spec import Parameter, Pipeline, StepSpec
from verderer.wire.problems import ProblemPlace
from verderer.wire.runs import Value
from verderer.wire.users import ParameterOut, PlannedStep, ValidationOut


def values_of(parameters: Mapping[str, Value]) -> dict[str, str]:
    """Parameters as text, the way YAML would have written them."""
    return {name: _text(value) for name, value in parameters.items()}


def validate(document: bytes, parameters: Mapping[str, Value] | None) -> ValidationOut:
    """Everything that is wrong with a pipeline, or what a run of it would consist of.

    The values of parameters are checked when they are given, even if none is.
    """
    try:
        pipeline = parse(document)
        if parameters is not None:
            merge_parameters(pipeline.parameters, values_of(parameters))
    except Invalid as e:
        found = [_place(p) for p in e.problems]
        return ValidationOut(valid=False, problems=found or [ProblemPlace(message=e.message)])
    return _describe(pipeline)


def _describe(pipeline: Pipeline) -> ValidationOut:
    sizes = {step.name: step.size for step in pipeline.steps}
    return ValidationOut(
        valid=True,
        problems=[],
        name=pipeline.name,
        project=pipeline.project,
        instances=sum(sizes.values()),
        edges=sum(s.size * sum(sizes[need] for need in s.needs) for s in pipeline.steps),
        steps=[_step(step) for step in pipeline.steps],
        parameters=[_parameter(one) for one in pipeline.parameters],
    )


def _step(step: StepSpec) -> PlannedStep:
    return PlannedStep(
        name=step.name,
        instances=step.size,
        needs=list(step.needs),
        requests={
            name: format_quantity(amount, resource=name) for name, amount in step.requests.items()
        },
        nodes=step.nodes,
    )


def _parameter(one: Parameter) -> ParameterOut:
    return ParameterOut(
        name=one.name,
        type=one.type.value,
        default=one.default,
        description=one.description,
        choices=list(one.choices),
    )


def _place(problem: Problem) -> ProblemPlace:
    return ProblemPlace(
        message=problem.message,
        field=problem.field,
        line=problem.line,
        column=problem.column,
        hint=problem.hint,
    )


def _text(value: Value) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value)
