"""Whether what a step refers to, in `${{ … }}` and in `when`, exists and may be used there."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from verderer.core.model.step import STEP_OVER
from verderer.core.pipeline.limits import MAX_REFERENCES
from verderer.core.pipeline.reading.document import child_path
from verderer.core.pipeline.reading.problems import Problems, did_you_mean, listed, shown
from verderer.core.pipeline.references import (
    FIXED,
    Reference,
    find_references,
    shell_code,
    variable_for,
)
from verderer.core.pipeline.spec import DEFAULT_WHEN, Pipeline, StepSpec
from verderer.core.pipeline.syntax import (
    Compare,
    Condition,
    ConditionError,
    Literal,
    Name,
    parse_condition,
    walk,
)

_STATES: Final = tuple(sorted(STEP_OVER))
_SCOPES: Final = (
    "params.NAME",
    "matrix.NAME",
    *FIXED,
    "inputs.NAME.path",
    "outputs.NAME.path",
)


@dataclass(frozen=True, slots=True)
class Context:
    """What the checks of one step may look at."""

    pipeline: Pipeline
    by_name: Mapping[str, int]
    """Index of each step by its name."""
    parameters: Mapping[str, None]
    """As references, such as `params.lr`, in the order declared."""
    problems: Problems


def check_references(path: str, step: StepSpec, context: Context) -> None:
    """Note references to what there is not, and those that would become code of a shell."""
    problems, code = context.problems, _field_of_code(path, step)
    known: frozenset[str] | None = None
    count = 0
    for field, text in _texts(path, step):
        for reference in find_references(text):
            known = _known_in(step) if known is None else known
            count += 1
            if field in (f"{path}.script", code) and reference.is_closed:
                _refuse_in_code(field, reference, problems)
            elif reference.name not in known:
                _check_reference(path, field, reference, known, context)
    if count > MAX_REFERENCES:
        message = f"a step has at most {MAX_REFERENCES} references, this one {count}"
        problems.add(message, field=path)


def check_when(path: str, step: StepSpec, context: Context) -> None:
    """Note what is wrong with the condition of a step."""
    if step.when == DEFAULT_WHEN:
        return
    problems, field = context.problems, f"{path}.when"
    try:
        condition = parse_condition(step.when)
    except ConditionError as e:
        if step.when.strip():
            problems.add(e.message, field=field, hint=e.hint, needle=e.part)
        else:
            problems.add("expected a condition, found an empty text", field=field)
        return
    for part in walk(condition):
        if isinstance(part, Name) and part.name.startswith("steps."):
            _check_state_of(path, part.name, step, context)
        elif isinstance(part, Name):
            _check_value_in_when(path, part.name, step, context)
        elif isinstance(part, Compare):
            _check_state(field, part.left, part.right, problems)
            _check_state(field, part.right, part.left, problems)


def _texts(path: str, step: StepSpec) -> Iterator[tuple[str, str]]:
    yield f"{path}.image", step.image
    yield f"{path}.script", step.script
    for index, word in enumerate(step.command):
        yield f"{path}.command[{index}]", word
    for index, word in enumerate(step.args):
        yield f"{path}.args[{index}]", word
    for name, value in step.env:
        yield child_path(f"{path}.env", name), value


def _known_in(step: StepSpec) -> frozenset[str]:
    """What a step may refer to beside the parameters."""
    return frozenset(
        [
            *(f"matrix.{name}" for name, _ in step.matrix),
            *FIXED,
            *(f"inputs.{spec.name}.path" for spec in step.inputs),
            *(f"outputs.{spec.name}.path" for spec in step.outputs),
        ]
    )


def _field_of_code(path: str, step: StepSpec) -> str:
    index = shell_code((*step.command, *step.args))
    if index is None:
        return ""
    if index < len(step.command):
        return f"{path}.command[{index}]"
    return f"{path}.args[{index - len(step.command)}]"


def _refuse_in_code(field: str, reference: Reference, problems: Problems) -> None:
    hint = "values are in the environment, as VERDERER_PARAM_NAME and the like"
    if reference.is_known_shape:
        hint = f'write "${variable_for(reference.name)}", in quotes: it has the same value'
    problems.add(
        f"{shown(reference.written)} would become code of the shell",
        field=field,
        hint=hint,
        needle=reference.written,
    )


def _check_reference(
    path: str, field: str, reference: Reference, known: frozenset[str], context: Context
) -> None:
    name, problems = reference.name, context.problems
    if name in context.parameters or _is_unreadable(path, name, problems):
        return
    if not reference.is_closed:
        message, hint = "`${{` is not closed by `}}`", "for the characters themselves write $${{"
    else:
        message = f"{shown(reference.written)} refers to nothing"
        hint = did_you_mean(problems.nearest(name, (*sorted(known), *context.parameters)))
        if not reference.is_known_shape and not hint:
            hint = f"there are {listed(_SCOPES)}"
    problems.add(message, field=field, hint=hint, needle=reference.written)


def _is_unreadable(path: str, name: str, problems: Problems) -> bool:
    """Whether what is referred to is there, but wrong in itself, which is already noted."""
    scope, _, rest = name.partition(".")
    if scope == "params":
        return problems.knows(f"parameters.{rest}")
    rest = rest.removesuffix(".path")
    return bool(rest) and problems.knows(f"{path}.{scope}.{rest}")


def _check_value_in_when(path: str, name: str, step: StepSpec, context: Context) -> None:
    axes = [f"matrix.{axis}" for axis, _ in step.matrix]
    problems = context.problems
    if name in axes or name in context.parameters or _is_unreadable(path, name, problems):
        return
    hint = did_you_mean(problems.nearest(name, (*axes, *context.parameters)))
    message = f"{shown(name)} refers to nothing"
    problems.add(message, field=f"{path}.when", hint=hint, needle=name)


def _check_state_of(path: str, name: str, step: StepSpec, context: Context) -> None:
    other, problems = name.split(".")[1], context.problems
    if other in step.needs:
        return
    if other in context.by_name:
        message, hint = f"`{other}` is not in `needs`", f"add `{other}` to the needs of this step"
    else:
        near = problems.nearest(other, [need for need in step.needs if need])
        message, hint = f"there is no step `{other}`", did_you_mean(near and f"steps.{near}.state")
    problems.add(message, field=f"{path}.when", hint=hint, needle=name)


def _check_state(field: str, one: Condition, other: Condition, problems: Problems) -> None:
    """A state compared with a word that no state is called never holds: most likely a slip."""
    if not (isinstance(one, Name) and one.name.startswith("steps.")):
        return
    if isinstance(other, Literal) and other.text not in _STATES:
        problems.add(
            f"{shown(other.text)} is not a state in which a step ends",
            field=field,
            hint=did_you_mean(problems.nearest(other.text, _STATES))
            or f"there are {listed(_STATES)}",
            needle=other.text,
        )
