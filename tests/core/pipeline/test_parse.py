from __future__ import annotations

import pytest

from tests.core.pipeline.make import pipeline, step, steps
from verderer.core.model.resources import Resources
from verderer.core.pipeline.spec import (
    InputSpec,
    OutputKind,
    OutputSpec,
    Parameter,
    ParameterType,
    Pipeline,
    StepSpec,
)

DIGITS = """
    metadata: {name: digits, project: demo, labels: {team: vision}, description: Ten digits}
    parameters:
      epochs: 5
      optimizer: {default: adam, choices: [adam, sgd], description: which}
    steps:
      - name: prepare
        image: python:3.12
        script: |
          python prepare.py
        outputs: {data: data/}
      - name: train
        needs: [prepare]
        matrix: {lr: [0.1, 0.01]}
        command: [python, train.py]
        args: [--lr, "${{ matrix.lr }}"]
        env: {DEBUG: on}
        inputs: {data: {from: prepare.data, path: in/data}}
        resources: {requests: {cpu: 500m, memory: 512Mi}, limits: {nvidia.com/gpu: 1}}
        nodes: 2
        retries: {count: 3, backoff: 1m}
        timeout: 10m
        grace: 5s
        when: steps.prepare.state == 'succeeded'
"""


def test_the_whole_shape_is_read() -> None:
    assert pipeline(DIGITS) == Pipeline(
        name="digits",
        project="demo",
        labels=(("team", "vision"),),
        description="Ten digits",
        parameters=(
            Parameter(name="epochs", default="5", type=ParameterType.INT),
            Parameter(
                name="optimizer", default="adam", description="which", choices=("adam", "sgd")
            ),
        ),
        steps=(
            StepSpec(
                name="prepare",
                image="python:3.12",
                script="python prepare.py\n",
                outputs=(OutputSpec(name="data", path="data", kind=OutputKind.DIRECTORY),),
            ),
            StepSpec(
                name="train",
                needs=("prepare",),
                matrix=(("lr", ("0.1", "0.01")),),
                command=("python", "train.py"),
                args=("--lr", "${{ matrix.lr }}"),
                env=(("DEBUG", "on"),),
                inputs=(
                    InputSpec(name="data", from_step="prepare", from_output="data", path="in/data"),
                ),
                requests=Resources.of({"cpu": 500, "memory": 2**29, "nvidia.com/gpu": 1000}),
                limits=Resources.of({"nvidia.com/gpu": 1000}),
                nodes=2,
                retries=3,
                backoff_s=60,
                timeout_s=600,
                grace_s=5,
                when="steps.prepare.state == 'succeeded'",
            ),
        ),
    )


def test_everything_but_name_and_program_has_a_default() -> None:
    assert pipeline("metadata: {name: p}\nsteps: [{name: s, command: [e]}]") == Pipeline(
        name="p", steps=(StepSpec(name="s", command=("e",)),)
    )


@pytest.mark.parametrize(
    "word", ["on", "yes", "012", "1_000", "2024-01-01", "1e3", "0x1F", "1.10", "12:30:45", "True"]
)
def test_a_text_stays_what_the_user_wrote(word: str) -> None:
    assert step(f"env: {{A: {word}}}").env == (("A", word),)


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        pytest.param("5", ParameterType.INT, id="a whole number"),
        pytest.param("-5", ParameterType.INT, id="a negative number"),
        pytest.param("012", ParameterType.INT, id="a leading zero, which YAML 1.2 ignores"),
        pytest.param("0.5", ParameterType.FLOAT, id="a number"),
        pytest.param("1e-3", ParameterType.FLOAT, id="a number with an exponent"),
        pytest.param("true", ParameterType.BOOL, id="a truth value"),
        pytest.param("yes", ParameterType.STRING, id="yes is a word"),
        pytest.param("'5'", ParameterType.STRING, id="a quoted number"),
        pytest.param("2024-01-01", ParameterType.STRING, id="a date"),
    ],
)
def test_a_parameter_has_the_type_of_its_default(written: str, expected: ParameterType) -> None:
    made = steps("{name: s, command: [e]}", parameters=f"{{x: {written}}}")
    assert made.parameters[0].type is expected
    assert made.parameters[0].default == written.strip("'")


def test_a_parameter_without_a_default_is_required() -> None:
    made = steps("{name: s, command: [e]}", parameters="{a: , b: {type: int}, c: {default: null}}")
    assert [(p.name, p.default) for p in made.parameters] == [("a", None), ("b", None), ("c", None)]
    assert made.parameters[1].type is ParameterType.INT


@pytest.mark.parametrize(
    ("written", "seconds"),
    [
        ("30s", 30),
        ("10m", 600),
        ("2h", 7200),
        ("1d", 86_400),
        ("1h30m", 5400),
        ("90", 90),
        ("'90'", 90),
    ],
)
def test_timeouts(written: str, seconds: int) -> None:
    assert step(f"timeout: {written}").timeout_s == seconds


def test_the_wait_before_a_retry_doubles_up_to_an_hour() -> None:
    made = step("retries: {count: 100, backoff: 10s}")
    assert [made.wait_before(n) for n in (1, 2, 3, 4)] == [0, 10, 20, 40]
    assert made.wait_before(100) == 3600
    assert step("retries: 1").wait_before(2) == 5


@pytest.mark.parametrize(
    ("resources", "requests", "limits"),
    [
        pytest.param(
            "limits: {cpu: 2}", {"cpu": 2000}, {"cpu": 2000}, id="a limit alone is a request too"
        ),
        pytest.param("requests: {cpu: 2}", {"cpu": 2000}, {}, id="a request alone has no limit"),
        pytest.param(
            "requests: {cpu: 1}, limits: {cpu: 2, memory: 1}",
            {"cpu": 1000, "memory": 1},
            {"cpu": 2000, "memory": 1},
            id="each resource by itself",
        ),
        pytest.param(
            "requests: {nvidia.com/mig-1g.5gb: 2}",
            {"nvidia.com/mig-1g.5gb": 2000},
            {"nvidia.com/mig-1g.5gb": 2000},
            id="a device's request is its limit",
        ),
        pytest.param(
            "limits: {google.com/tpu: 4, huawei.com/Ascend910: 1, amd.com/gpu: 8}",
            {"google.com/tpu": 4000, "huawei.com/Ascend910": 1000, "amd.com/gpu": 8000},
            {"google.com/tpu": 4000, "huawei.com/Ascend910": 1000, "amd.com/gpu": 8000},
            id="any accelerator",
        ),
        pytest.param(
            "limits: {hugepages-2Mi: 4Mi, ephemeral-storage: 1G}",
            {"hugepages-2Mi": 2**22, "ephemeral-storage": 10**9},
            {"hugepages-2Mi": 2**22, "ephemeral-storage": 10**9},
            id="huge pages and disk",
        ),
    ],
)
def test_resources(resources: str, requests: dict[str, int], limits: dict[str, int]) -> None:
    made = step(f"resources: {{{resources}}}")
    assert made.requests.as_dict() == requests
    assert made.limits.as_dict() == limits


def test_an_input_implies_the_need_and_has_a_place() -> None:
    made = steps(
        "{name: a, command: [e], outputs: {x: x.bin, y: {path: ./y/, kind: directory}}}",
        "{name: b, command: [e]}",
        "{name: c, command: [e], needs: [b], inputs: {x: a.x, y: a.y}}",
    )
    assert made.steps[2].needs == ("b", "a")
    assert [i.path for i in made.steps[2].inputs] == ["inputs/x", "inputs/y"]
    assert [(o.path, o.kind) for o in made.steps[0].outputs] == [
        ("x.bin", OutputKind.AUTO),
        ("y", OutputKind.DIRECTORY),
    ]


def test_anchors_and_merge_keys_save_typing() -> None:
    made = pipeline("""
        metadata: {name: p}
        steps:
          - &base
            name: a
            command: [e]
            env: &env {A: 1, B: 2}
          - <<: *base
            name: b
            env: {<<: [*env, {B: 9, C: 4}], A: 3}
    """)
    assert made.steps[1].command == ("e",)
    assert dict(made.steps[1].env) == {"A": "3", "B": "2", "C": "4"}


def test_a_byte_order_mark_is_harmless() -> None:
    assert steps("{name: s, command: [e]}") == pipeline(
        "\ufeffmetadata: {name: p}\nsteps: [{name: s, command: [e]}]"
    )


def test_json_is_yaml() -> None:
    text = '{"metadata": {"name": "p"}, "steps": [{"name": "s", "command": ["e"], "nodes": 2}]}'
    assert pipeline(text).steps[0].nodes == 2


def test_a_pipeline_can_be_hashed() -> None:
    assert hash(pipeline(DIGITS)) == hash(pipeline(DIGITS))
