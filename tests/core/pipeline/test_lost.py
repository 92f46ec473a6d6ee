"""`onClusterLost`: the pipeline's own is for steps that do not say it themselves."""

from __future__ import annotations

import pytest

from verderer.core.errors import Invalid
from verderer.core.pipeline.parse import parse
from verderer.core.pipeline.spec import OnClusterLost

WAIT, RERUN = OnClusterLost.WAIT, OnClusterLost.RERUN
STEPS = """
metadata: {name: p}
%s
steps:
- {name: a, command: [x]}
- {name: b, command: [x], onClusterLost: rerun}
- {name: c, command: [x], onClusterLost: wait}
"""


@pytest.mark.parametrize(
    ("pipeline", "expected"),
    [
        pytest.param("", [WAIT, RERUN, WAIT], id="wait unless it says otherwise"),
        pytest.param("onClusterLost: rerun", [RERUN, RERUN, WAIT], id="the pipeline says rerun"),
        pytest.param("onClusterLost: wait", [WAIT, RERUN, WAIT], id="the pipeline says wait"),
    ],
)
def test_what_a_step_does(pipeline: str, expected: list[OnClusterLost]) -> None:
    found = parse((STEPS % pipeline).encode())
    assert [step.on_cluster_lost for step in found.steps] == expected


def test_anything_else_is_refused_where_it_stands() -> None:
    with pytest.raises(Invalid) as refused:
        parse((STEPS % "onClusterLost: rerum").encode())
    (problem,) = refused.value.problems
    assert (problem.field, problem.line) == ("onClusterLost", 3)
    assert "wait" in problem.message
    assert "rerun" in problem.hint


def test_another_spelling_of_the_field_is_named() -> None:
    with pytest.raises(Invalid) as refused:
        parse((STEPS % "on_cluster_lost: rerun").encode())
    assert "onClusterLost" in refused.value.problems[0].hint
