"""What must hold between the parts of a pipeline: parameters, names, needs, cycles and size."""

from __future__ import annotations

import re
from collections.abc import Mapping

from verderer.core.pipeline.expand import too_large
from verderer.core.pipeline.limits import MAX_NAME
from verderer.core.pipeline.parameters import wrong_value
from verderer.core.pipeline.reading.problems import Problems, did_you_mean
from verderer.core.pipeline.reference_checks import Context
from verderer.core.pipeline.spec import Parameter, Pipeline, StepSpec
from verderer.core.pipeline.step_checks import check_distinct_variables, check_step

_MAX_CYCLE_SHOWN = 12


def check_pipeline(pipeline: Pipeline, problems: Problems) -> None:
    """Note everything that the tables of fields cannot say.

    The pipeline may be incomplete: what has an empty name could not be read, which is already
    noted, and is passed over.
    """
    for parameter in pipeline.parameters:
        _check_parameter(parameter, problems)
    check_distinct_variables((p.name for p in pipeline.parameters), "parameters", problems)
    by_name = _check_names(pipeline.steps, problems)
    references = dict.fromkeys(f"params.{p.name}" for p in pipeline.parameters)
    context = Context(pipeline, by_name, references, problems)
    for index, step in enumerate(pipeline.steps):
        _check_needs(f"steps[{index}]", step, by_name, problems)
        check_step(f"steps[{index}]", step, context)
    _check_cycles(pipeline.steps, by_name, problems)
    if wrong := too_large(pipeline.steps):
        problems.add(wrong.message, field="steps", hint=wrong.hint)


def _check_parameter(parameter: Parameter, problems: Problems) -> None:
    path = f"parameters.{parameter.name}"
    of_type = Parameter(name=parameter.name, type=parameter.type)
    for index, choice in enumerate(parameter.choices):
        if wrong := wrong_value(of_type, choice):
            problems.add(wrong.message, field=f"{path}.choices[{index}]", hint=wrong.hint)
    if parameter.default is not None and (wrong := wrong_value(parameter, parameter.default)):
        problems.add(wrong.message, field=f"{path}.default", hint=wrong.hint)


def _check_names(steps: tuple[StepSpec, ...], problems: Problems) -> dict[str, int]:
    """Note names that are taken, and return the index of each step by its name."""
    by_name: dict[str, int] = {}
    for index, step in enumerate(steps):
        first = by_name.setdefault(step.name, index)
        if first != index and step.name:
            line = problems.place_of(f"steps[{first}].name").line
            problems.add(
                f"there are two steps called `{step.name}`; the first is on line {line}",
                field=f"steps[{index}].name",
                hint="rename one of them",
            )
    by_name.pop("", None)
    for index in range(len(steps)):
        _check_instance_names(index, steps, by_name, problems)
    return by_name


def _check_instance_names(
    index: int, steps: tuple[StepSpec, ...], by_name: Mapping[str, int], problems: Problems
) -> None:
    """A step with a matrix becomes `name-0`, `name-1`, …: those must be free and short enough."""
    step, field = steps[index], f"steps[{index}].name"
    longest = len(step.name) + len(f"-{step.size - 1}")
    if step.matrix and len(step.name) <= MAX_NAME < longest:
        problems.add(
            f"with the numbers of its matrix the name becomes {longest} long, "
            f"and {MAX_NAME} is the limit",
            field=field,
            hint="shorten the name",
        )
    found = re.fullmatch(r"(.+)-(0|[1-9][0-9]{0,5})", step.name)
    of = by_name.get(found[1]) if found else None
    if found and of is not None and steps[of].matrix and int(found[2]) < steps[of].size:
        problems.add(
            f"`{step.name}` is also what an instance of `{found[1]}` will be called",
            field=field,
            hint="rename one of them",
        )


def _check_needs(path: str, step: StepSpec, by_name: Mapping[str, int], problems: Problems) -> None:
    for index, need in enumerate(step.needs):
        field = f"{path}.needs[{index}]"
        if not need or not problems.knows(field):
            continue  # Unreadable, or implied by an input, which is checked by itself.
        if need == step.name:
            problems.add(f"the step `{need}` needs itself", field=field, hint="remove it")
        elif need not in by_name:
            others = (name for name in by_name if name != step.name)
            problems.add(
                f"there is no step `{need}`",
                field=field,
                hint=did_you_mean(problems.nearest(need, others)),
            )


def _check_cycles(
    steps: tuple[StepSpec, ...], by_name: Mapping[str, int], problems: Problems
) -> None:
    """Note one circle in every knot of steps that wait for each other."""
    stuck = _never_ready(steps, by_name)
    seen: set[str] = set()
    for start in stuck:
        path: dict[str, int] = {}
        at = start
        while at not in path and at not in seen:
            path[at] = len(path)
            at = next(need for need in steps[by_name[at]].needs if need in stuck and need != at)
        if at in path:
            _note_cycle(list(path)[path[at] :], by_name, problems)
        seen.update(path)


def _note_cycle(cycle: list[str], by_name: Mapping[str, int], problems: Problems) -> None:
    names = [*cycle, cycle[0]]
    if len(names) > _MAX_CYCLE_SHOWN:
        names = [*names[: _MAX_CYCLE_SHOWN - 2], "…", names[-1]]
    problems.add(
        f"steps need each other in a circle: {' → '.join(names)}",
        field=f"steps[{by_name[cycle[0]]}].needs",
        hint="remove one of these needs",
    )


def _never_ready(steps: tuple[StepSpec, ...], by_name: Mapping[str, int]) -> dict[str, None]:
    """The steps that are in a circle or wait for one, in the order written."""
    waits: dict[str, int] = {}
    followers: dict[str, list[str]] = {}
    for name, index in by_name.items():
        needs = {need for need in steps[index].needs if need in by_name and need != name}
        waits[name] = len(needs)
        for need in needs:
            followers.setdefault(need, []).append(name)
    ready = [name for name, count in waits.items() if count == 0]
    while ready:
        for follower in followers.get(ready.pop(), ()):
            waits[follower] -= 1
            if waits[follower] == 0:
                ready.append(follower)
    return dict.fromkeys(name for name, count in waits.items() if count)
