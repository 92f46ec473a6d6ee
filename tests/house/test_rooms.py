"""What the import contracts cannot say."""

from __future__ import annotations

import ast

import pytest

from tests.house.sources import Source, functions, sources

_CLOCKS = {"now", "utcnow", "today"}
_VAGUE = {"utils", "util", "common", "helpers", "helper", "manager", "misc"}
# Facts about the platform itself: no row of any project is read for them.
_OF_NO_PROJECT = {"platform_gauges", "postgres_facts", "scheduler_gone_s"}
_MARKS = ("NotImplementedError", "TODO", "FIXME", "XXX")


@pytest.mark.parametrize("source", sources(), ids=lambda s: s.name)
def test_a_charter_is_a_docstring_and_nothing_else(source: Source) -> None:
    assert ast.get_docstring(source.tree), "says what it is for"
    if source.path.name == "__init__.py":
        assert len(source.tree.body) == 1


@pytest.mark.parametrize("source", sources(), ids=lambda s: s.name)
def test_names_say_what_a_module_is(source: Source) -> None:
    assert source.path.stem not in _VAGUE


@pytest.mark.parametrize("source", sources(), ids=lambda s: s.name)
def test_nothing_is_left_unfinished(source: Source) -> None:
    assert not [mark for mark in _MARKS if mark in source.text]


@pytest.mark.parametrize("source", [s for s in sources() if s.room == "core"], ids=lambda s: s.name)
def test_the_core_reads_no_clock(source: Source) -> None:
    for node in ast.walk(source.tree):
        if isinstance(node, ast.Attribute) and node.attr in _CLOCKS:
            assert not isinstance(node.value, ast.Name | ast.Attribute), ast.unparse(node)


@pytest.mark.parametrize("source", [s for s in sources() if s.room != "cli"], ids=lambda s: s.name)
def test_imports_stand_at_the_top(source: Source) -> None:
    inside = [
        ast.unparse(node)
        for function in functions(source.tree)
        for node in ast.walk(function)
        if isinstance(node, ast.Import | ast.ImportFrom)
    ]
    assert inside == []


@pytest.mark.parametrize(
    "source", [s for s in sources() if "store/views" in s.name], ids=lambda s: s.name
)
def test_whoever_reads_for_a_page_says_in_which_scope(source: Source) -> None:
    for node in source.tree.body:
        if not isinstance(node, ast.AsyncFunctionDef) or node.name.startswith("_"):
            continue
        if node.name in _OF_NO_PROJECT:
            continue
        names = [a.arg for a in node.args.args]
        if "tx" in names:
            assert names[1:2] == ["scope"], f"{node.name} must take a Scope after tx"


@pytest.mark.parametrize("source", sources(), ids=lambda s: s.name)
def test_sql_is_never_built_from_values(source: Source) -> None:
    """An f-string that looks like a statement may hold names of constants only."""
    for node in ast.walk(source.tree):
        if not isinstance(node, ast.JoinedStr):
            continue
        text = "".join(p.value for p in node.values if isinstance(p, ast.Constant))
        if any(word in text for word in ("SELECT ", "INSERT INTO", "UPDATE ", "DELETE FROM")):
            for part in node.values:
                if isinstance(part, ast.FormattedValue):
                    name = ast.unparse(part.value)
                    assert name.isupper() or name.lstrip("_").isupper(), f"{name} in a statement"
