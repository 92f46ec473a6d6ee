from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.core.pipeline.make import HEAD, problem, step, text_of
from verderer.core.pipeline.references import (
    find_references,
    shell_code,
    substitute,
    variable_for,
)


def test_references_are_filled_in() -> None:
    values = {"params.x": "1", "run.id": "r"}
    assert substitute("a ${{ params.x }}-${{run.id}} b", values) == "a 1-r b"


def test_a_value_is_never_read_again() -> None:
    values = {"params.x": "${{ params.y }} $${{", "params.y": "secret"}
    assert substitute("${{ params.x }}", values) == "${{ params.y }} $${{"


def test_two_dollars_stand_for_the_characters_themselves() -> None:
    assert substitute("$${{ params.x }} $x $$ {{y}}", {}) == "${{ params.x }} $x $$ {{y}}"
    assert list(find_references("$${{ params.x }}")) == []


@given(st.dictionaries(st.from_regex(r"params\.[a-z]{1,3}", fullmatch=True), st.text(), max_size=3))
def test_only_references_change(values: dict[str, str]) -> None:
    text = "|".join(["$", *(f"${{{{ {name} }}}}" for name in values), "}}"])
    assert substitute(text, values) == "|".join(["$", *values.values(), "}}"])


@pytest.mark.parametrize(
    ("name", "variable"),
    [
        ("params.learning-rate", "VERDERER_PARAM_LEARNING_RATE"),
        ("matrix.lr", "VERDERER_MATRIX_LR"),
        ("inputs.data.path", "VERDERER_INPUT_DATA"),
        ("outputs.model.path", "VERDERER_OUTPUT_MODEL"),
        ("run.id", "VERDERER_RUN_ID"),
        ("run.name", "VERDERER_RUN_NAME"),
        ("step.name", "VERDERER_STEP_NAME"),
    ],
)
def test_every_value_has_its_variable(name: str, variable: str) -> None:
    assert variable_for(name) == variable


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        pytest.param(("sh", "-c", "x"), 2, id="the plain case"),
        pytest.param(("/bin/bash", "-lc", "x"), 2, id="a path and options in one word"),
        pytest.param(("bash", "-e", "-o", "pipefail", "-c", "x"), 5, id="options before"),
        pytest.param(("bash", "-c", "-e", "x"), 3, id="options after"),
        pytest.param(("env", "A=1", "bash", "-c", "x"), 4, id="a program that starts a shell"),
        pytest.param(("bash", "train.sh", "-c", "x"), None, id="a script with an option -c"),
        pytest.param(("bash", "--norc", "train.sh"), None, id="a long option"),
        pytest.param(("python", "-c", "x"), None, id="not a shell"),
        pytest.param(("sh", "-c"), None, id="no code"),
    ],
)
def test_code_of_a_shell_is_found(words: tuple[str, ...], expected: int | None) -> None:
    assert shell_code(words) == expected


@pytest.mark.parametrize(
    ("fields", "field", "words", "hint"),
    [
        pytest.param(
            "command: ['${{ params.lrr }}']",
            "command[0]",
            "`${{ params.lrr }}` refers to nothing",
            "`params.lr`",
            id="a slip in the command",
        ),
        pytest.param(
            "command: [e], args: ['${{ matrix.c }}']",
            "args[0]",
            "refers to nothing",
            "`matrix.a`",
            id="an axis of no matrix",
        ),
        pytest.param(
            "command: [e], env: {X: '${{ secrets.token }}'}",
            "env.X",
            "refers to nothing",
            "params.NAME",
            id="a scope that there is not",
        ),
        pytest.param(
            "command: [e], image: 'a:${{ run.di }}'",
            "image",
            "refers to nothing",
            "`run.id`",
            id="a slip in the image",
        ),
        pytest.param(
            "command: [e], args: ['${{ outputs.m.path }}']",
            "args[0]",
            "refers to nothing",
            "`outputs.model.path`",
            id="an output that there is not",
        ),
        pytest.param(
            "command: [e], args: ['${{ params.lr']",
            "args[0]",
            "not closed",
            "$${{",
            id="an open reference",
        ),
        pytest.param(
            "command: [e], args: ['${{ params.lr + 1 }}']",
            "args[0]",
            "refers to nothing",
            "`params.lr`",
            id="an operator",
        ),
        pytest.param(
            "script: 'train --lr ${{ params.lr }}'",
            "script",
            "would become code of the shell",
            '"$VERDERER_PARAM_LR"',
            id="a parameter in a script",
        ),
        pytest.param(
            "script: 'train ${{ foo }}'",
            "script",
            "would become code",
            "VERDERER_PARAM_NAME",
            id="nonsense in a script",
        ),
        pytest.param(
            "command: [bash, -c, 'train ${{ matrix.a }}']",
            "command[2]",
            "would become code",
            '"$VERDERER_MATRIX_A"',
            id="an axis in a shell's code",
        ),
        pytest.param(
            "command: [sh, -ec], args: ['cat ${{ outputs.model.path }}']",
            "args[0]",
            "would become code",
            '"$VERDERER_OUTPUT_MODEL"',
            id="a path in a shell's code among the arguments",
        ),
    ],
)
def test_references_are_checked(fields: str, field: str, words: str, hint: str) -> None:
    line = f"{{name: s, matrix: {{a: [1]}}, outputs: {{model: m}}, {fields}}}"
    text = text_of(line, parameters="{lr: 0.1}")
    found = problem(text)
    assert found.field == f"steps[0].{field}"
    assert words in found.message
    assert hint in found.hint
    assert text.splitlines()[found.line - 1][found.column - 1 :].startswith("${{")


def test_a_reference_in_a_block_is_pointed_at() -> None:
    found = problem(
        HEAD
        + "parameters: {x: 1}\nsteps:\n- name: s\n  script: |\n    one\n\n    two ${{ params.x }}\n"
    )
    assert (found.line, found.column) == (8, 9)


def test_arguments_after_the_code_of_a_shell_are_safe() -> None:
    made = step("args: [bash, -c, 'echo \"$1\"', sh, '${{ run.id }}']")
    assert made.args[-1] == "${{ run.id }}"


def test_references_of_a_step_are_limited() -> None:
    many = "${{ run.id }}" * 501
    assert "at most 500 references" in problem(text_of(f"{{name: s, command: ['{many}']}}")).message
