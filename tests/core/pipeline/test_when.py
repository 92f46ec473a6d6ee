from __future__ import annotations

from collections.abc import Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.core.pipeline.make import problem, step, steps, text_of
from verderer.core.errors import Invalid
from verderer.core.model.step import STEP_OVER, StepState
from verderer.core.pipeline.expressions import combined_state, evaluate_when
from verderer.core.pipeline.syntax import ConditionError, parse_condition

OK, BAD, SKIP, STOP = "succeeded", "failed", "skipped", "cancelled"


def holds(
    expr: str,
    parameters: Mapping[str, str] | None = None,
    matrix: Mapping[str, str] | None = None,
    **states: str,
) -> bool:
    return evaluate_when(expr, parameters=parameters or {}, matrix=matrix or {}, states=states)


@pytest.mark.parametrize(
    ("expr", "states", "expected"),
    [
        pytest.param("", {"a": OK}, True, id="nothing written: all have succeeded"),
        pytest.param("succeeded()", {}, True, id="nothing needed is a success"),
        pytest.param("succeeded()", {"a": OK, "b": BAD}, False, id="one failed"),
        pytest.param("succeeded()", {"a": SKIP}, False, id="skipped is no success"),
        pytest.param("succeeded()", {"a": STOP}, False, id="cancelled is no success"),
        pytest.param("failed()", {"a": OK, "b": BAD}, True, id="one failure is a failure"),
        pytest.param("failed()", {"a": SKIP, "b": STOP}, False, id="skipped is no failure"),
        pytest.param("failed()", {}, False, id="nothing needed has not failed"),
        pytest.param("always()", {"a": BAD}, True, id="always"),
        pytest.param("not failed()", {"a": SKIP}, True, id="not failed is not succeeded"),
        pytest.param("steps.a.state == 'failed'", {"a": BAD}, True, id="a failure asked for"),
        pytest.param("steps.a.state != 'failed'", {"a": SKIP}, True, id="anything but a failure"),
        pytest.param("true", {"a": BAD}, False, id="no word about states: all must succeed"),
        pytest.param("true", {"a": OK}, True, id="no word about states, and all have"),
        pytest.param("always() and true", {"a": BAD}, True, id="always and more"),
        pytest.param("steps.zz.state == ''", {}, True, id="an unknown step has no state"),
    ],
)
def test_states(expr: str, states: Mapping[str, str], expected: bool) -> None:
    assert holds(expr, **states) is expected


@pytest.mark.parametrize(
    ("expr", "expected"),
    [
        ("params.n == 5", True),
        ("params.n == 5.0", True),
        ("params.n == '5'", True),
        pytest.param("params.n == '5.0'", False, id="a quoted number is a text"),
        ("params.n < 10", True),
        pytest.param("params.n < '10'", False, id="texts compare letter by letter"),
        ("params.n >= 5 and params.n <= 5", True),
        ("params.n != 5", False),
        ("params.n > -1", True),
        ("5e0 == params.n", True),
        ("params.lr < 0.1", True),
        ("matrix.lr == params.lr", True),
        ("params.name == 'adam'", True),
        ('params.name == "adam"', True),
        ("params.name == 5", False),
        ("params.name < 5", False),
        ("params.yes", True),
        ("params.no", False),
        ("params.yes == true", True),
        ("params.no == false", True),
        ("not params.no", True),
        ("params.zero", False),
        ("params.name", True),
        ("params.nothing", False),
        ("params.no or params.yes", True),
        ("params.no and params.yes", False),
        pytest.param("true or true and false", True, id="and binds tighter than or"),
        ("(true or true) and false", False),
        pytest.param("not false and false", False, id="not binds tighter than and"),
        ("not not true", True),
        pytest.param("not 1 == 2", True, id="comparisons bind tighter than not"),
        ("(1 < 2) == true", True),
        ("params.learning-rate == 1", True),
        ("'a' < 'b'", True),
        ("'' == params.nothing", True),
    ],
)
def test_values(expr: str, expected: bool) -> None:
    parameters = {
        "n": "5",
        "lr": "0.01",
        "name": "adam",
        "yes": "true",
        "no": "false",
        "zero": "0.0",
        "learning-rate": "1",
    }
    assert holds(expr, parameters, {"lr": "1e-2"}) is expected


@pytest.mark.parametrize(
    ("expr", "words", "hint"),
    [
        pytest.param("params.n = 5", "no `=`", "`==`", id="one equals sign"),
        pytest.param("true && false", "no `&&`", "`and`", id="and as in C"),
        pytest.param("true || false", "no `||`", "`or`", id="or as in C"),
        pytest.param("!true", "no `!`", "`not`", id="not as in C"),
        pytest.param("${{ params.n }} == 5", "not part", "write params.x", id="a template"),
        pytest.param("adam == params.o", "`adam` is not a value", "quotes", id="no quotes"),
        pytest.param("succeded()", "no function", "`succeeded`", id="a slip of a function"),
        pytest.param("failed", "is a function", "failed()", id="no parentheses"),
        pytest.param("failed('a')", "takes nothing", "", id="an argument"),
        pytest.param("(true", "not closed", "", id="an open parenthesis"),
        pytest.param("true)", "not expected", "", id="a parenthesis too many"),
        pytest.param("'a", "not closed", "", id="an open quote"),
        pytest.param("1 < 2 < 3", "not expected", "two values at a time", id="a chain"),
        pytest.param("true and", "ends where", "", id="an end too early"),
        pytest.param("and true", "needs a condition", "", id="a word too early"),
        pytest.param("steps.a == 'failed'", "not a value", "steps.a.state", id="no .state"),
        pytest.param("True", "not a value", "`true`", id="Python's truth"),
        pytest.param("(" * 33 + "true" + ")" * 33, "32 levels", "", id="too deep"),
        pytest.param("1 == 1.2.3", "not part", "", id="not a number"),
    ],
)
def test_refused_conditions(expr: str, words: str, hint: str) -> None:
    with pytest.raises(ConditionError, match=r".+") as caught:
        parse_condition(expr)
    assert words in caught.value.message
    assert hint in caught.value.hint
    with pytest.raises(Invalid, match="`when` cannot be read"):
        holds(expr)


@pytest.mark.parametrize(
    ("when", "part", "words", "hint"),
    [
        ("params.eopchs > 1", "params", "refers to nothing", "`params.epochs`"),
        ("true and matrix.x", "matrix", "refers to nothing", ""),
        ("steps.b.state == 'failed'", "steps", "not in `needs`", "add `b`"),
        ("steps.aa.state == 'failed'", "steps", "no step", "`steps.a.state`"),
        ("steps.a.state == 'success'", "success", "not a state", "`succeeded`"),
        ("params.epochs => 1", "=>", "no `=>`", "`>=`"),
    ],
)
def test_a_condition_is_checked_where_it_stands(
    when: str, part: str, words: str, hint: str
) -> None:
    text = text_of(
        "{name: a, command: [e]}",
        "{name: b, command: [e]}",
        f"{{name: s, command: [e], needs: [a], when: {when}}}",
        parameters="{epochs: 1}",
    )
    found = problem(text)
    assert (found.line, found.field) == (6, "steps[2].when")
    assert text.splitlines()[5][found.column - 1 :].startswith(part)
    assert words in found.message
    assert hint in found.hint


def test_a_condition_may_look_at_what_an_input_implies() -> None:
    made = steps(
        "{name: a, command: [e], outputs: {x: x}}",
        "{name: b, command: [e], inputs: {x: a.x}, when: \"steps.a.state == 'failed'\"}",
    )
    assert made.steps[1].needs == ("a",)


def test_the_default_is_success() -> None:
    assert step("nodes: 1").when == "succeeded()"


@pytest.mark.parametrize(
    ("states", "expected"),
    [
        ([OK, OK], StepState.SUCCEEDED),
        ([OK, SKIP], StepState.SKIPPED),
        ([SKIP, STOP, OK], StepState.CANCELLED),
        ([STOP, BAD, SKIP], StepState.FAILED),
        ([], StepState.SUCCEEDED),
    ],
)
def test_the_state_of_a_matrix_is_its_worst(states: list[str], expected: StepState) -> None:
    assert combined_state(states) is expected
    assert combined_state(map(StepState, states)) is expected


ATOMS = st.sampled_from(
    (
        *("params.a", "matrix.b", "steps.s.state", "steps.t.state", "1", "-2.5", "'x'", "''"),
        *("true", "always()", "failed()", "succeeded()"),
    )
)
CONDITIONS = st.recursive(
    ATOMS
    | st.tuples(ATOMS, st.sampled_from(["==", "!=", "<", "<=", ">", ">="]), ATOMS).map(" ".join),
    lambda inner: st.one_of(
        inner.map("not ({})".format),
        st.tuples(inner, st.sampled_from(["and", "or"]), inner).map(
            lambda t: f"({t[0]}) {t[1]} ({t[2]})"
        ),
    ),
    max_leaves=12,
)
VALUES = st.text(max_size=50) | st.integers().map(str) | st.floats().map(str)
STATES = st.dictionaries(st.sampled_from(["s", "t"]), st.sampled_from(sorted(STEP_OVER)))


@given(expr=CONDITIONS, a=VALUES, b=VALUES, states=STATES)
def test_every_condition_is_true_or_false_of_any_values(
    expr: str, a: str, b: str, states: dict[str, str]
) -> None:
    assert holds(expr, {"a": a}, {"b": b}, **states) in (True, False)


@given(expr=CONDITIONS, states=STATES)
def test_not_is_the_opposite_where_states_are_asked_about(
    expr: str, states: dict[str, str]
) -> None:
    asked = f"always() and ({expr})"
    assert holds(f"always() and not ({expr})", **states) is not holds(asked, **states)


@given(st.text(alphabet="abps.()'\"=!<>&|-_ 0159notrud", max_size=60) | st.text(max_size=40))
def test_any_text_is_a_condition_or_refused(expr: str) -> None:
    try:
        parse_condition(expr)
    except ConditionError as e:
        said = e.message
    else:
        said = "nothing"
    assert said == said.strip() != ""
