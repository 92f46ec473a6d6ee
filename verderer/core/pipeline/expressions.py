"""What conditions mean: whether a `when` holds, and what a group of instances amounts to.

Values are texts. A text in quotes compares as text; anything else compares as a number when both
sides read as one, and as text otherwise. So evaluation is total: whatever `parse` accepted gives
true or false, with any values.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Mapping
from typing import Final, NamedTuple

from verderer.core.errors import Invalid
from verderer.core.model.step import StepState
from verderer.core.pipeline.reading.kinds import is_float, is_int
from verderer.core.pipeline.syntax import (
    Call,
    Compare,
    Condition,
    ConditionError,
    Every,
    Literal,
    Name,
    Not,
    Some,
    parse_condition,
    walk,
)

_ORDER: Final[Mapping[str, Callable[[float | str, float | str], bool]]] = {
    "==": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}
_MAX_NUMBER: Final = 40


class _Facts(NamedTuple):
    parameters: Mapping[str, str]
    matrix: Mapping[str, str]
    states: Mapping[str, str]


class _Value(NamedTuple):
    text: str
    quoted: bool = False


def evaluate_when(
    expr: str,
    *,
    parameters: Mapping[str, str],
    matrix: Mapping[str, str],
    states: Mapping[str, str],
) -> bool:
    """Whether a step runs, now that all it needs has ended.

    `states` has the state of each needed step by its name; for one with a matrix,
    `combined_state` of its instances. Unless the condition asks about states itself, by
    `succeeded()`, `failed()`, `always()` or `steps.NAME.state`, it also requires that everything
    needed has succeeded. An empty condition is `succeeded()`. A value that is not there is the
    empty text.

    Raises:
        Invalid: the condition is not in the grammar, which `parse` would have refused.
    """
    facts = _Facts(parameters, matrix, states)
    if not expr or expr == "succeeded()":
        return _call("succeeded", facts)
    try:
        condition = parse_condition(expr)
    except ConditionError as e:
        raise Invalid(f"`when` cannot be read: {e.message}", hint=e.hint) from e
    if not asks_about_states(condition) and not _call("succeeded", facts):
        return False
    return _holds(condition, facts)


def asks_about_states(condition: Condition) -> bool:
    """Whether the condition itself says what should happen after a failure."""
    return any(
        isinstance(part, Call) or (isinstance(part, Name) and part.name.startswith("steps."))
        for part in walk(condition)
    )


def combined_state(states: Iterable[StepState | str]) -> StepState:
    """The state of a step with a matrix, of the states of its instances, all of which have ended.

    Failed if any failed, else cancelled if any was, else skipped if any was, else succeeded.
    """
    present = set(states)
    for state in (StepState.FAILED, StepState.CANCELLED, StepState.SKIPPED):
        if state in present:
            return state
    return StepState.SUCCEEDED


def _holds(condition: Condition, facts: _Facts) -> bool:
    match condition:
        case Not(inner):
            return not _holds(inner, facts)
        case Every(parts):
            return all(_holds(part, facts) for part in parts)
        case Some(parts):
            return any(_holds(part, facts) for part in parts)
        case Call(function):
            return _call(function, facts)
        case Compare(left, sign, right):
            return _compare(_value(left, facts), sign, _value(right, facts))
        case Literal() | Name():
            return _is_true(_value(condition, facts).text)


def _value(condition: Condition, facts: _Facts) -> _Value:
    match condition:
        case Literal(text, quoted):
            return _Value(text, quoted)
        case Name(name):
            return _Value(_look_up(name, facts))
        case _:
            return _Value("true" if _holds(condition, facts) else "false")


def _look_up(name: str, facts: _Facts) -> str:
    scope, _, rest = name.partition(".")
    if scope == "params":
        return facts.parameters.get(rest, "")
    if scope == "matrix":
        return facts.matrix.get(rest, "")
    return str(facts.states.get(rest.removesuffix(".state"), ""))


def _call(function: str, facts: _Facts) -> bool:
    if function == "always":
        return True
    if function == "failed":
        return any(state == StepState.FAILED for state in facts.states.values())
    return all(state == StepState.SUCCEEDED for state in facts.states.values())


def _compare(left: _Value, sign: str, right: _Value) -> bool:
    if not left.quoted and not right.quoted:
        a, b = _number(left.text), _number(right.text)
        if a is not None and b is not None:
            return _ORDER[sign](a, b)
    return _ORDER[sign](left.text, right.text)


def _is_true(text: str) -> bool:
    """False are the empty text, `false` and zero; all else is true."""
    return text not in ("", "false") and _number(text) != 0


def _number(text: str) -> float | None:
    if len(text) > _MAX_NUMBER:
        return None
    if is_int(text):
        return int(text, 0) if text[:2] in ("0o", "0x") else int(text)
    return float(text) if is_float(text) else None
