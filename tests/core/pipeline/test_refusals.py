"""What is refused, where the problem points, and what it advises."""

from __future__ import annotations

import pytest

from tests.core.pipeline.make import problem, problems, text_of


def one(fields: str, *, parameters: str = "") -> str:
    return text_of(f"{{name: s, command: [e], {fields}}}", parameters=parameters)


@pytest.mark.parametrize(
    ("text", "field", "words", "hint"),
    [
        pytest.param(
            one("imgae: x"), "steps[0].imgae", "no field `imgae`", "`image`", id="a slip of a name"
        ),
        pytest.param(
            one("depends_on: [x]"), "steps[0].depends_on", "no field", "`needs`", id="Argo's name"
        ),
        pytest.param(
            one("timeoutSeconds: 5"),
            "steps[0].timeoutSeconds",
            "no field",
            "`timeout`",
            id="Kubernetes' name",
        ),
        pytest.param(
            one("frobnicate: 1"), "steps[0].frobnicate", "no field", "its fields are", id="no idea"
        ),
        pytest.param(
            "steps: [{name: s, command: [e]}]", "metadata", "needs `metadata`", "", id="no metadata"
        ),
        pytest.param(
            "metadata: {name: My Net}\nsteps: [{name: s, command: [e]}]",
            "metadata.name",
            "lower-case",
            "`my-net`",
            id="a name that is no DNS label",
        ),
        pytest.param(
            text_of("{name: " + "a" * 64 + ", command: [e]}"),
            "steps[0].name",
            "63 is the limit",
            "shorten",
            id="a name of 64 characters",
        ),
        pytest.param(
            "metadata: {name: p, labels: {team: a b}}\nsteps: [{name: s, command: [e]}]",
            "metadata.labels.team",
            "label's value",
            "",
            id="a label with a space",
        ),
        pytest.param(
            "metadata: {name: p}\nsteps: []", "steps", "1 to 10,000 items", "", id="no steps"
        ),
        pytest.param("[]", "", "expected a pipeline, found a list", "metadata", id="a list"),
        pytest.param(
            text_of("{name: s}"), "steps[0]", "`command` or `script`", "command:", id="no program"
        ),
        pytest.param(one("script: x"), "steps[0].script", "has both", "one of", id="two programs"),
        pytest.param(
            text_of("{name: s, command: e}"),
            "steps[0].command",
            "expected a list of texts, found `e`",
            "[e]",
            id="a text for a list",
        ),
        pytest.param(
            text_of("{name: s, command: ['']}"),
            "steps[0].command[0]",
            "empty name",
            "",
            id="a program without a name",
        ),
        pytest.param(
            text_of("{name: s, command: [e, {a: b}]}"),
            "steps[0].command[1]",
            "found a mapping",
            "",
            id="a mapping for a text",
        ),
        pytest.param(
            one("env: {A: }"), "steps[0].env.A", "found nothing", '""', id="an empty variable"
        ),
        pytest.param(
            one('args: ["a\\0b"]'), "steps[0].args[0]", "NUL", "remove", id="NUL in an argument"
        ),
        pytest.param(
            one("env: {A-B: x}"), "steps[0].env.A-B", "environment variable", "`A_B`", id="env name"
        ),
        pytest.param(
            one("env: {NVIDIA_VISIBLE_DEVICES: all}"),
            "steps[0].env.NVIDIA_VISIBLE_DEVICES",
            "set by the cluster, so that steps do not see others' devices",
            "resources",
            id="devices by the back door",
        ),
        pytest.param(
            one("env: {CUDA_VISIBLE_DEVICES: 0}"),
            "steps[0].env.CUDA_VISIBLE_DEVICES",
            "set by the cluster",
            "resources",
            id="CUDA's devices",
        ),
        pytest.param(
            one("env: {VERDERER_TOKEN: x}"),
            "steps[0].env.VERDERER_TOKEN",
            "set by Verderer",
            "another name",
            id="our own variables",
        ),
        pytest.param(
            one("env: {MLFLOW_TRACKING_URI: x}"),
            "steps[0].env.MLFLOW_TRACKING_URI",
            "set by Verderer",
            "where to log",
            id="the tracking server",
        ),
        pytest.param(
            one("resources: {limits: {gpu: 1}}"),
            "steps[0].resources.limits.gpu",
            "name of a resource",
            "`nvidia.com/gpu`",
            id="a device without its domain",
        ),
        pytest.param(
            one("resources: {limits: {memroy: 1}}"),
            "steps[0].resources.limits.memroy",
            "name of a resource",
            "`memory`",
            id="a slip of a resource",
        ),
        pytest.param(
            one("resources: {requests: {cpu: 0}}"),
            "steps[0].resources.requests.cpu",
            "more than 0 of cpu",
            "leave cpu out",
            id="no cpu",
        ),
        pytest.param(
            one("resources: {requests: {cpu: -1}}"),
            "steps[0].resources.requests.cpu",
            "cannot be negative",
            "",
            id="less than no cpu",
        ),
        pytest.param(
            one("resources: {requests: {memory: 99Pi}}"),
            "steps[0].resources.requests.memory",
            "more than can be counted",
            "",
            id="absurd memory",
        ),
        pytest.param(
            one("resources: {requests: {memory: 7Pi}}"),
            "steps[0].resources.requests.memory",
            "no node has 7Pi",
            "check the unit",
            id="more memory than any node",
        ),
        pytest.param(
            one("resources: {requests: {cpu: .nan}}"),
            "steps[0].resources.requests.cpu",
            "not a quantity",
            "",
            id="not a number of cpus",
        ),
        pytest.param(
            one("resources: {limits: {nvidia.com/gpu: 0.5}}"),
            "steps[0].resources.limits[nvidia.com/gpu]",
            "handed out whole",
            "",
            id="half a GPU",
        ),
        pytest.param(
            one("resources: {requests: {cpu: 2}, limits: {cpu: 1500m}}"),
            "steps[0].resources.requests.cpu",
            "request of 2 cpu is more than the limit of 1500m",
            "raise",
            id="a request above its limit",
        ),
        pytest.param(
            one("resources: {requests: {a.b/c: 1}, limits: {a.b/c: 2}}"),
            "steps[0].resources.requests[a.b/c]",
            "is not the limit of 2",
            "the same twice",
            id="a device whose request is not its limit",
        ),
        pytest.param(
            one("resources: {requests: {cpu: '${{ params.n }}'}}", parameters="{n: 1}"),
            "steps[0].resources.requests.cpu",
            "not a quantity",
            "only in image, command, args and env",
            id="a reference where none is filled in",
        ),
        pytest.param(one("nodes: 0"), "steps[0].nodes", "from 1 to", "", id="on no node"),
        pytest.param(
            one("nodes: '2'"), "steps[0].nodes", 'found `"2"`', "quotes", id="a number in quotes"
        ),
        pytest.param(one("nodes: 1.5"), "steps[0].nodes", "whole number", "", id="1.5 nodes"),
        pytest.param(one("retries: -1"), "steps[0].retries", "from 0", "", id="-1 retries"),
        pytest.param(
            one("retries: {backoff: 1s}"),
            "steps[0].retries.count",
            "needs `count`",
            "",
            id="a wait without retries",
        ),
        pytest.param(
            one("timeout: 10 minutes"), "steps[0].timeout", "30s, 10m", "`10m`", id="minutes"
        ),
        pytest.param(one("timeout: 0"), "steps[0].timeout", "from 1 s", "no limit", id="no time"),
        pytest.param(
            one("timeout: 9999d"), "steps[0].timeout", "to 366 days", "", id="for decades"
        ),
        pytest.param(
            one("outputs: {x: /etc/passwd}"),
            "steps[0].outputs.x",
            "relative path",
            "`etc/passwd`",
            id="an absolute path",
        ),
        pytest.param(
            one("outputs: {x: a/../../b}"),
            "steps[0].outputs.x",
            "without `..`",
            "stay inside",
            id="a path that climbs out",
        ),
        pytest.param(
            one('outputs: {x: "a\\0b"}'), "steps[0].outputs.x", "NUL", "", id="a path with NUL"
        ),
        pytest.param(
            one("outputs: {x: .}"), "steps[0].outputs.x", "path", "", id="the directory itself"
        ),
        pytest.param(
            one("outputs: {a-b: x, A_B: y}"),
            "steps[0].outputs.A_B",
            "share one environment variable",
            "rename",
            id="two outputs in one variable",
        ),
        pytest.param(
            one("matrix: {a: []}"), "steps[0].matrix.a", "1 to 10,000", "", id="an empty axis"
        ),
        pytest.param(
            one("matrix: {a: [1, 2, 1]}"),
            "steps[0].matrix.a[2]",
            "in the list twice",
            "remove",
            id="a value twice",
        ),
        pytest.param(
            text_of(
                "{name: t, command: [e], matrix: {a: [1, 2]}}", "{name: t-1, command: [e]}"
            ),
            "steps[1].name",
            "instance of `t` will be called",
            "rename",
            id="a name that a matrix takes",
        ),
        pytest.param(
            text_of("{name: " + "a" * 62 + ", command: [e], matrix: {a: [1, 2]}}"),
            "steps[0].name",
            "becomes 64 long",
            "shorten",
            id="a name that a matrix makes too long",
        ),
        pytest.param(
            text_of("{name: s, command: [e]}", "{name: s, command: [e]}"),
            "steps[1].name",
            "two steps called `s`; the first is on line 3",
            "rename",
            id="a name twice",
        ),
        pytest.param(
            text_of("{name: train, command: [e]}", "{name: t, command: [e], needs: [trian]}"),
            "steps[1].needs[0]",
            "no step `trian`",
            "`train`",
            id="an unknown need",
        ),
        pytest.param(
            one("needs: [s]"), "steps[0].needs[0]", "needs itself", "remove", id="itself"
        ),
        pytest.param(
            text_of(
                "{name: a, command: [e], needs: [c]}",
                "{name: b, command: [e], needs: [a]}",
                "{name: c, command: [e], needs: [b]}",
                "{name: d, command: [e], needs: [c]}",
            ),
            "steps[0].needs",
            "in a circle: a → c → b → a",
            "remove",
            id="a circle",
        ),
        pytest.param(
            text_of(
                "{name: a, command: [e], outputs: {x: x}, inputs: {y: b.y}}",
                "{name: b, command: [e], outputs: {y: y}, inputs: {x: a.x}}",
            ),
            "steps[0].needs",
            "a → b → a",
            "",
            id="a circle of inputs",
        ),
        pytest.param(
            text_of(
                "{name: a, command: [e], outputs: {model: x}}",
                "{name: b, command: [e], inputs: {m: a.modle}}",
            ),
            "steps[1].inputs.m.from",
            "no output `modle`",
            "`a.model`",
            id="an unknown output",
        ),
        pytest.param(
            one("outputs: {x: x}, inputs: {y: s.x}"),
            "steps[0].inputs.y.from",
            "its own output",
            "",
            id="its own output",
        ),
        pytest.param(
            text_of("{name: step, command: [e]}", "{name: b, command: [e], inputs: {m: setp.x}}"),
            "steps[1].inputs.m.from",
            "no step `setp`",
            "`step.x`",
            id="an output of an unknown step",
        ),
        pytest.param(
            one("inputs: {m: s}"), "steps[0].inputs.m", "step.output", "", id="no output named"
        ),
        pytest.param(
            text_of(
                "{name: a, command: [e], outputs: {x: x, y: y}}",
                "{name: b, command: [e], inputs: {p: {from: a.x, path: in}, "
                "q: {from: a.y, path: in/q}}}",
            ),
            "steps[1].inputs.q.path",
            "over each other",
            "path of its own",
            id="an input inside another",
        ),
        pytest.param(
            one("image: 'a b'"), "steps[0].image", "without spaces", "", id="an image with a space"
        ),
        pytest.param(
            one("command: [f]"), "steps[0].command", "given twice", "one of the two", id="key twice"
        ),
        pytest.param(
            one("env: {A: !!python/object:os.system x}"),
            "steps[0].env.A",
            "tag `!!python/object:os.system`",
            "remove it",
            id="a tag that would run code elsewhere",
        ),
        pytest.param(
            one("<<: [1]"), "steps[0]", "merges mappings", "<<: *name", id="a merge of a number"
        ),
        pytest.param(
            one("", parameters="{n: {type: int, default: x}}"),
            "parameters.n.default",
            "a whole number",
            "",
            id="a default of the wrong type",
        ),
        pytest.param(
            one("", parameters="{n: {type: integer}}"),
            "parameters.n.type",
            "string, int, float or bool",
            "`int`",
            id="a type that there is not",
        ),
        pytest.param(
            one("", parameters="{n: {default: adm, choices: [adam, sgd]}}"),
            "parameters.n.default",
            "adam or sgd",
            "`adam`",
            id="a default that is no choice",
        ),
        pytest.param(
            one("", parameters="{n: {type: int, choices: [1, b]}}"),
            "parameters.n.choices[1]",
            "a whole number",
            "",
            id="a choice of the wrong type",
        ),
        pytest.param(
            one("", parameters="{lr: 1, LR: 2}"),
            "parameters.LR",
            "share one environment variable",
            "rename",
            id="two parameters in one variable",
        ),
        pytest.param(
            one("", parameters="{9x: 1}"), "parameters[9x]", "begins with", "`x`", id="9x"
        ),
    ],
)  # fmt: skip
def test_a_problem_names_its_field_and_the_remedy(
    text: str, field: str, words: str, hint: str
) -> None:
    found = problem(text)
    assert found.field == field
    assert words in found.message
    assert hint in found.hint
    assert found.line > 0
    assert found.column > 0


def test_all_problems_are_found_at_once_in_the_order_of_the_text() -> None:
    text = (
        "metadata: {name: Net}\n"
        "steps:\n"
        "  - name: a\n"
        "    command: [e]\n"
        "    nodes: 0\n"
        "    timeout: soon\n"
        "  - name: b\n"
        "    needs: [c]\n"
        "    when: steps.a.state == 'sucess'\n"
    )
    assert [(p.line, p.column, p.field) for p in problems(text)] == [
        (1, 18, "metadata.name"),
        (5, 12, "steps[0].nodes"),
        (6, 14, "steps[0].timeout"),
        (7, 5, "steps[1]"),
        (8, 13, "steps[1].needs[0]"),
        (9, 11, "steps[1].when"),
        (9, 29, "steps[1].when"),
    ]


def test_one_mistake_is_not_reported_again_by_what_depends_on_it() -> None:
    text = text_of(
        "{name: Bad Name, command: e, outputs: {x: /x}}",
        "{name: t, command: [e, '${{ params.p }}'], matrix: {a: 1}, args: ['${{ matrix.a }}'], "
        "inputs: {i: {from: nope}}, env: {A: '${{ inputs.i.path }}'}}",
        parameters="{p: []}",
    )
    assert [p.field for p in problems(text)] == [
        "parameters.p",
        "steps[0].name",
        "steps[0].command",
        "steps[0].outputs.x",
        "steps[1].matrix.a",
        "steps[1].inputs.i.from",
    ]


def test_two_circles_are_two_problems() -> None:
    text = text_of(
        *(
            f"{{name: {name}, command: [e], needs: [{need}]}}"
            for name, need in ["ab", "ba", "cd", "dc"]
        )
    )
    assert [p.message.split(": ")[1] for p in problems(text)] == ["a → b → a", "c → d → c"]


def test_beyond_a_hundred_problems_the_rest_is_counted() -> None:
    text = text_of("{name: s, command: [e], " + ", ".join(f"x{n}: 1" for n in range(150)) + "}")
    assert len(problems(text)) == 100


def test_matrices_may_not_expand_to_more_than_ten_thousand_steps() -> None:
    axis = "[" + ", ".join(map(str, range(101))) + "]"
    found = problem(one(f"matrix: {{a: {axis}, b: {axis}}}"))
    assert "expand to 10,201, and 10,000 is the limit" in found.message


def test_edges_between_two_matrices_are_limited() -> None:
    axis = "[" + ", ".join(map(str, range(500))) + "]"
    found = problem(
        text_of(
            f"{{name: a, command: [e], matrix: {{a: {axis}}}}}",
            f"{{name: b, command: [e], matrix: {{a: {axis}}}, needs: [a]}}",
        )
    )
    assert "250,000 pairs of steps, and 200,000 is the limit" in found.message
    assert "gathers" in found.hint


def test_a_text_longer_than_a_program_can_be_given_is_refused() -> None:
    found = problem(one(f"env: {{A: '{'é' * 60_000}'}}"))
    assert "120,000 bytes" in found.message
