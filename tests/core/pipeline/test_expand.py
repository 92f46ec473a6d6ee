from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.core.pipeline.make import steps
from verderer.core.errors import Invalid
from verderer.core.pipeline.expand import Expansion, Instance, Source, expand, sources_of
from verderer.core.pipeline.render import Launch, render
from verderer.core.pipeline.spec import Pipeline, StepSpec

ONE = steps("{name: s, command: [e]}")
FAN = steps(
    "{name: prepare, command: [e], outputs: {data: d/}}",
    "{name: train, command: [e], matrix: {lr: [0.1, 0.2], seed: [1, 2]}, "
    "inputs: {data: prepare.data}, outputs: {model: m}}",
    "{name: test, command: [e], matrix: {on: [x, y]}, needs: [train]}",
    "{name: pick, command: [e], inputs: {models: {from: train.model, path: in}}}",
)


def test_a_step_without_a_matrix_is_one_instance() -> None:
    assert expand(ONE, {}) == Expansion({}, (Instance(0, "s", 0),), (), {"s": range(1)})


def test_a_matrix_is_every_combination_in_the_order_written() -> None:
    instances = expand(FAN, {}).instances
    assert [i.name for i in instances] == [
        "prepare",
        "train-0",
        "train-1",
        "train-2",
        "train-3",
        "test-0",
        "test-1",
        "pick",
    ]
    assert [i.index for i in instances] == list(range(8))
    assert instances[2].matrix == (("lr", "0.1"), ("seed", "2"))
    assert instances[3].matrix == (("lr", "0.2"), ("seed", "1"))


def test_a_step_waits_for_all_instances_of_what_it_needs() -> None:
    assert expand(FAN, {}).edges == (
        *((0, after) for after in (1, 2, 3, 4)),
        *((before, 5) for before in (1, 2, 3, 4)),
        *((before, 6) for before in (1, 2, 3, 4)),
        *((before, 7) for before in (1, 2, 3, 4)),
    )


def test_inputs_come_from_every_instance_into_a_place_of_its_own() -> None:
    made = expand(FAN, {})
    assert sources_of(FAN, made, made.instances[0]) == ()
    assert sources_of(FAN, made, made.instances[1]) == (
        Source(input="data", instance=0, output="data", path="inputs/data"),
    )
    assert [(s.instance, s.path) for s in sources_of(FAN, made, made.instances[7])] == [
        (1, "in/train-0"),
        (2, "in/train-1"),
        (3, "in/train-2"),
        (4, "in/train-3"),
    ]


def test_parameters_are_merged_in_the_order_declared() -> None:
    made = steps("{name: s, command: [e]}", parameters="{a: 1, b: x, c: True}")
    assert expand(made, {"b": "y"}).parameters == {"a": "1", "b": "y", "c": "true"}
    assert list(expand(made, {"c": "FALSE", "a": "2"}).parameters.values()) == ["2", "x", "false"]


@pytest.mark.parametrize(
    ("given", "field", "words", "hint"),
    [
        pytest.param({"epochs": "1"}, "data", "needs a value", "where it is", id="one is missing"),
        pytest.param(
            {"data": "x", "epoch": "1"},
            "epoch",
            "no parameter `epoch`",
            "`epochs`",
            id="one is unknown",
        ),
        pytest.param(
            {"data": "x", "zzz": "1"}, "zzz", "no parameter", "it declares", id="no idea"
        ),
        pytest.param(
            {"data": "x", "epochs": "1.5"},
            "epochs",
            "a whole number, found `1.5`",
            "type: float",
            id="not whole",
        ),
        pytest.param({"data": "x", "lr": "fast"}, "lr", "a number", "", id="not a number"),
        pytest.param({"data": "x", "lr": "nan"}, "lr", "a number", "", id="not any number"),
        pytest.param({"data": "x", "dry": "yes"}, "dry", "true or false", "", id="not a bool"),
        pytest.param(
            {"data": "x", "optimizer": "asgd"},
            "optimizer",
            "adam or sgd",
            "`sgd`",
            id="not a choice",
        ),
        pytest.param({"data": "a\0b"}, "data", "NUL", "", id="NUL"),
        pytest.param({"data": "é" * 9000}, "data", "16,384 bytes", "file", id="too long"),
    ],
)  # fmt: skip
def test_parameters_are_checked(given: dict[str, str], field: str, words: str, hint: str) -> None:
    made = steps(
        "{name: s, command: [e]}",
        parameters="{data: {description: where it is}, epochs: 1, lr: 0.1, dry: false, "
        "optimizer: {default: adam, choices: [adam, sgd]}}",
    )
    with pytest.raises(Invalid) as caught:
        expand(made, given)
    (found,) = caught.value.problems
    assert found.field == f"parameters.{field}"
    assert words in found.message
    assert hint in found.hint


def test_a_pipeline_without_parameters_says_so() -> None:
    with pytest.raises(Invalid) as caught:
        expand(ONE, {"x": "1"})
    assert caught.value.problems[0].hint == "the pipeline declares none"


def test_a_pipeline_made_by_hand_is_limited_too() -> None:
    axis = ("n", tuple(map(str, range(10_001))))
    made = Pipeline(name="p", steps=(StepSpec(name="s", command=("e",), matrix=(axis,)),))
    with pytest.raises(Invalid, match="10,000 is the limit"):
        expand(made, {})


@given(
    sizes=st.lists(st.integers(0, 4), min_size=1, max_size=6),
    links=st.sets(st.tuples(st.integers(0, 5), st.integers(0, 5)), max_size=9),
)
def test_instances_and_edges_of_any_graph(sizes: list[int], links: set[tuple[int, int]]) -> None:
    spec = tuple(
        StepSpec(
            name=f"s{i}",
            command=("e",),
            matrix=(("n", tuple(map(str, range(size)))),) if size else (),
            needs=tuple(f"s{a}" for a, b in sorted(links) if b == i and a < i),
        )
        for i, size in enumerate(sizes)
    )
    made = expand(Pipeline(name="p", steps=spec), {})
    names = [instance.name for instance in made.instances]
    assert len(set(names)) == len(names) == sum(step.size for step in spec)
    assert all(re.fullmatch(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?", name) for name in names)
    assert len(set(made.edges)) == len(made.edges)
    for before, after in made.edges:
        step = spec[made.instances[after].template]
        assert spec[made.instances[before].template].name in step.needs
    assert len(made.edges) == sum(s.size * spec[int(n[1:])].size for s in spec for n in s.needs)


def test_a_launch_has_everything_filled_in() -> None:
    made = steps(
        "{name: s, image: 'r/x:${{ params.tag }}', matrix: {lr: [0.1]}, "
        "command: [python, '${{ step.name }}'], args: ['--lr=${{ matrix.lr }}', '$${{ x }}'], "
        "env: {RUN: '${{ run.name }}/${{ run.id }}', OUT: '${{ outputs.m.path }}'}, "
        "outputs: {m: m}}",
        parameters="{tag: v1, learning-rate: 1}",
    )
    expansion = expand(made, {"tag": "v2"})
    assert render(
        made.steps[0],
        expansion.instances[0],
        parameters=expansion.parameters,
        run_id="r7",
        run_name="digits",
        input_paths={"data": "/w/data"},
        output_paths={"m": "/w/m"},
    ) == Launch(
        command=("python", "s-0"),
        args=("--lr=0.1", "${{ x }}"),
        script="",
        env={
            "RUN": "digits/r7",
            "OUT": "/w/m",
            "VERDERER_PARAM_TAG": "v2",
            "VERDERER_PARAM_LEARNING_RATE": "1",
            "VERDERER_MATRIX_LR": "0.1",
            "VERDERER_INPUT_DATA": "/w/data",
            "VERDERER_OUTPUT_M": "/w/m",
            "VERDERER_RUN_ID": "r7",
            "VERDERER_RUN_NAME": "digits",
            "VERDERER_STEP_NAME": "s-0",
        },
        image="r/x:v2",
    )


@given(st.text().filter(lambda text: "\0" not in text))
def test_no_value_of_a_parameter_changes_a_script(value: str) -> None:
    made = steps("{name: s, script: 'echo \"$VERDERER_PARAM_X\"'}", parameters="{x: }")
    launch = render(
        made.steps[0],
        Instance(0, "s", 0),
        parameters={"x": value},
        run_id="",
        run_name="",
        input_paths={},
        output_paths={},
    )
    assert launch.script == 'echo "$VERDERER_PARAM_X"'
    assert launch.env["VERDERER_PARAM_X"] == value
