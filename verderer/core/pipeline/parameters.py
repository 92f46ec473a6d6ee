"""The values of a pipeline's parameters: defaults, what was given, and whether it is allowed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from verderer.core.pipeline.limits import MAX_VALUE
from verderer.core.pipeline.reading.kinds import is_bool, is_float, is_int
from verderer.core.pipeline.reading.problems import (
    Problems,
    Wrong,
    did_you_mean,
    listed,
    nearest,
    shown,
)
from verderer.core.pipeline.spec import Parameter, ParameterType

_MAX_LISTED: Final = 12
_EXPECTED: Final = {
    ParameterType.INT: "a whole number",
    ParameterType.FLOAT: "a number",
    ParameterType.BOOL: "true or false",
}


def wrong_value(parameter: Parameter, text: str) -> Wrong | None:
    """Why `text` cannot be the value of `parameter`; None when it can."""
    if "\0" in text:
        return Wrong("a value cannot contain the character NUL")
    if len(text.encode("utf-8", "surrogatepass")) > MAX_VALUE:
        limit = f"a value has at most {MAX_VALUE:,} bytes"
        return Wrong(limit, "put larger things into a file that the step reads")
    if not _has_type(text, parameter.type):
        expected = _EXPECTED[parameter.type]
        hint = "declare it with `type: float` or `type: string` if that is what it is"
        return Wrong(f"expected {expected}, found {shown(text)}", hint)
    if parameter.choices and text not in parameter.choices:
        choices = listed(parameter.choices[:_MAX_LISTED])
        hint = did_you_mean(nearest(text, parameter.choices))
        return Wrong(f"expected {choices}, found {shown(text)}", hint)
    return None


def merge_parameters(parameters: tuple[Parameter, ...], given: Mapping[str, str]) -> dict[str, str]:
    """The value of every parameter, in the order declared; `true` and `false` in lower case.

    Raises:
        Invalid: a value is missing, not allowed, or for a parameter that there is not.
    """
    if not parameters and not given:
        return {}
    problems = Problems()
    known = {parameter.name: parameter for parameter in parameters}
    for name in given:
        if name not in known:
            hint = did_you_mean(problems.nearest(name, known)) or _declared(known)
            message = f"there is no parameter {shown(name)}"
            problems.add(message, field=f"parameters.{name[:100]}", hint=hint)
    merged: dict[str, str] = {}
    for name, parameter in known.items():
        value = given.get(name, parameter.default)
        if value is None:
            hint = parameter.description or "it has no default"
            problems.add(
                f"the parameter `{name}` needs a value", field=f"parameters.{name}", hint=hint
            )
        elif name in given and (wrong := wrong_value(parameter, value)):
            problems.add(wrong.message, field=f"parameters.{name}", hint=wrong.hint)
        else:
            merged[name] = value.lower() if parameter.type is ParameterType.BOOL else value
    problems.raise_if_any("the list of parameters")
    return merged


def _has_type(text: str, expected: ParameterType) -> bool:
    match expected:
        case ParameterType.INT:
            return is_int(text)
        case ParameterType.FLOAT:
            return is_float(text)
        case ParameterType.BOOL:
            return is_bool(text)
        case ParameterType.STRING:
            return True


def _declared(known: Mapping[str, Parameter]) -> str:
    if not known:
        return "the pipeline declares none"
    return f"it declares {listed(tuple(known)[:_MAX_LISTED])}"
