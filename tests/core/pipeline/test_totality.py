"""Any bytes give a pipeline or `Invalid`, and a pipeline that was accepted can always be used."""

from __future__ import annotations

import contextlib

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.core.pipeline.make import HEAD, text_of
from verderer.core.errors import Invalid
from verderer.core.pipeline.expand import expand, sources_of
from verderer.core.pipeline.expressions import evaluate_when
from verderer.core.pipeline.parse import parse
from verderer.core.pipeline.render import render

WHOLE = text_of(
    "{name: a, image: 'i:${{ params.p }}', script: 'x', outputs: {o: o/}, retries: 1}",
    "&b {name: b, needs: [a], command: [e, '${{ matrix.m }}'], matrix: {m: [1, 2]}, "
    "inputs: {i: {from: a.o, path: in}}, when: \"params.p == 1 and steps.a.state == 'failed'\"}",
    "{<<: *b, name: c, env: {A: 'x'}, resources: {limits: {cpu: 1, nvidia.com/gpu: 1}}, "
    "timeout: 1h, nodes: 2}",
    parameters="{p: {default: 1, choices: [1, 2]}, q: 5}",
)
PIECES = st.sampled_from(
    [
        *("metadata:", "parameters:", "steps:", "name:", "command:", "script:", "needs:", "env:"),
        *("matrix:", "when:", "inputs:", "outputs:", "resources:", "requests:", "limits:", "cpu:"),
        *("retries:", "count:", "from:", "path:", "timeout:", "image:", "nodes:", "args:", "- "),
        *("\n", "\n  ", "\n    ", "\n- ", "{", "}", "[", "]", ", ", ": ", "&a ", "*a", "<<: *a"),
        *("!!str ", "!x ", "'", '"', "|\n", ">-\n", "# ", "---\n", "...\n", "? ", "%YAML 1.1\n"),
        *("${{ params.x }}", "${{", "}}", "$${{", "a", "b-1", "a.b", "~", "null", "true", "on"),
        *("012", "1.5", "1e999", "10m", "0x1f", "500m", "2Gi", ".nan", "-1", "\t", "\0", "\x07"),
        *("\ufeff", "\u2028", "\x85", "é", "😀", '"\\ud800"', '"\\0"', "always()", "a == 'b'"),
    ]
)


def use(data: bytes) -> None:
    with contextlib.suppress(Invalid):
        made = parse(data)
        given_ = {p.name: p.choices[0] if p.choices else "1" for p in made.parameters}
        expansion = expand(made, given_)
        for instance in expansion.instances[:20]:
            step = made.steps[instance.template]
            sources_of(made, expansion, instance)
            render(
                step,
                instance,
                parameters=expansion.parameters,
                run_id="r",
                run_name="n",
                input_paths={spec.name: "/i" for spec in step.inputs},
                output_paths={spec.name: "/o" for spec in step.outputs},
            )
            evaluate_when(
                step.when,
                parameters=expansion.parameters,
                matrix=dict(instance.matrix),
                states=dict.fromkeys(step.needs, "succeeded"),
            )


def test_the_document_that_others_are_made_of_is_accepted() -> None:
    assert len(expand(parse(WHOLE.encode()), {}).instances) == 5


@given(st.binary(max_size=200))
def test_any_bytes(data: bytes) -> None:
    use(data)


@given(st.text(max_size=200))
def test_any_text(text: str) -> None:
    use(text.encode("utf-8", "surrogatepass"))


@settings(max_examples=400)
@given(st.lists(PIECES, max_size=40).map("".join), st.booleans())
def test_any_pieces_of_yaml(text: str, headed: bool) -> None:
    use(((HEAD + "steps:\n- name: s\n  " if headed else "") + text).encode())


@settings(max_examples=600)
@given(data=st.data())
def test_any_change_of_a_pipeline(data: st.DataObject) -> None:
    text = WHOLE
    for _ in range(data.draw(st.integers(1, 4))):
        start = data.draw(st.integers(0, len(text)))
        end = data.draw(st.integers(start, min(len(text), start + 8)))
        text = text[:start] + data.draw(PIECES | st.just("")) + text[end:]
    use(text.encode())
