"""The words above the list of runs."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from verderer.core.model.run import RunState
from verderer.store.views.runs import RunFilter
from verderer.web.search_syntax import LIVE, parse


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param("", RunFilter(), id="nothing asks for everything"),
        pytest.param("train", RunFilter(text="train"), id="a word is part of the name"),
        pytest.param("a b", RunFilter(text="a b"), id="words belong together"),
        pytest.param(
            "state:failed", RunFilter(states=frozenset({RunState.FAILED})), id="one state"
        ),
        pytest.param(
            "state:failed,cancelled",
            RunFilter(states=frozenset({RunState.FAILED, RunState.CANCELLED})),
            id="two states",
        ),
        pytest.param("state:live", RunFilter(states=LIVE), id="everything under way"),
        pytest.param("cluster:local", RunFilter(cluster="local"), id="where it ran"),
        pytest.param("by:ana", RunFilter(actor="ana"), id="who"),
        pytest.param("team:vision", RunFilter(labels=(("team", "vision"),)), id="any label"),
        pytest.param("label.state:x", RunFilter(labels=(("state", "x"),)), id="a label so called"),
        pytest.param('name:"a b"', RunFilter(name="a b"), id="quotes keep blanks"),
        pytest.param('name:"a', RunFilter(name='"a'), id="a quote that is still open"),
        pytest.param("project:llm", RunFilter(project="llm"), id="the project in words"),
    ],
)
def test_parse(text: str, expected: RunFilter) -> None:
    search = parse(text)
    assert search.filter == expected
    assert search.unknown == ()


@pytest.mark.parametrize("text", ["state:broken", "state:", "cluster:"])
def test_words_that_mean_nothing_are_named(text: str) -> None:
    assert parse(text).unknown == (text,)


def test_words_outweigh_the_chosen_project() -> None:
    assert parse("project:llm", project="demo").filter.project == "llm"
    assert parse("x", project="demo").filter.project == "demo"


@given(st.text(max_size=200))
def test_whatever_is_typed_is_read(text: str) -> None:
    parse(text)
