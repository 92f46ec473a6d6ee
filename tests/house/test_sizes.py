"""Small honest units: limits that make a growing room show itself."""

from __future__ import annotations

import ast
from collections import defaultdict
from statistics import mean

import pytest

from tests.house.sources import PACKAGE, ROOT, Source, functions, sources

MODULE, TEST_MODULE = 500, 800
ROOM_MEAN = 220
FUNCTION = 70
PARAMETERS = 8
CLASS = 250
MODULES_IN_FOLDER = 20
TEMPLATE = 200
SCRIPT = 400
README = 150


@pytest.mark.parametrize("source", sources(), ids=lambda s: s.name)
def test_modules_functions_and_classes_are_small(source: Source) -> None:
    assert source.lines <= MODULE
    for node in ast.walk(source.tree):
        if isinstance(node, ast.ClassDef):
            assert _length(node) <= CLASS, node.name
    for function in functions(source.tree):
        assert _length(function) <= FUNCTION, function.name
        given = function.args
        names = [a.arg for a in (*given.posonlyargs, *given.args, *given.kwonlyargs)]
        # A command's parameters are its flags: the command line wants them one by one.
        if source.room != "cli":
            assert len([n for n in names if n not in ("self", "cls")]) <= PARAMETERS, function.name


@pytest.mark.parametrize("source", sources("tests"), ids=lambda s: s.name)
def test_tests_are_small_too(source: Source) -> None:
    assert source.lines <= TEST_MODULE


def test_the_mean_file_of_a_room_is_short() -> None:
    rooms: defaultdict[str, list[int]] = defaultdict(list)
    for source in sources():
        if source.room and source.path.name != "__init__.py":
            rooms[source.room].append(source.lines)
    assert {room: mean(sizes) for room, sizes in rooms.items() if mean(sizes) > ROOM_MEAN} == {}


def test_no_folder_is_a_crowd() -> None:
    crowds = {}
    for folder in (PACKAGE, *(p for p in PACKAGE.rglob("*") if p.is_dir())):
        modules = [p for p in folder.glob("*.py") if p.name != "__init__.py"]
        if len(modules) > MODULES_IN_FOLDER:
            crowds[str(folder.relative_to(ROOT))] = len(modules)
    assert crowds == {}


def test_templates_scripts_and_the_readme_are_short() -> None:
    long = {}
    for pattern, limit in (("*.html", TEMPLATE), ("*.js", SCRIPT)):
        for path in (PACKAGE / "web").rglob(pattern):
            lines = path.read_text(encoding="utf-8").count("\n")
            if "vendor" not in path.parts and lines > limit:
                long[str(path.relative_to(ROOT))] = lines
    for name in ("README.md", "README.zh-CN.md"):
        lines = (ROOT / name).read_text(encoding="utf-8").count("\n")
        if lines > README:
            long[name] = lines
    assert long == {}


def _length(node: ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    return (node.end_lineno or node.lineno) - node.lineno + 1
