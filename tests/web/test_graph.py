"""The graph's layout: everything has its own place, and edges go from left to right."""

from __future__ import annotations

import itertools
import re
import time

from hypothesis import given, settings
from hypothesis import strategies as st

from verderer.web.graph import MARGIN, NODE_HEIGHT, NODE_WIDTH, Drawing, Item, arrange


def item(key: int) -> Item:
    return Item(key=key, label=f"step-{key}", shown="waiting", steps=(key,), counts={})


@st.composite
def graphs(draw: st.DrawFn) -> tuple[list[Item], list[tuple[int, int]]]:
    size = draw(st.integers(1, 25))
    possible = [(a, b) for a in range(size) for b in range(a + 1, size)]
    pairs = draw(st.lists(st.sampled_from(possible), unique=True)) if possible else []
    return [item(key) for key in range(size)], pairs


@given(graphs())
@settings(max_examples=150)
def test_laws(graph: tuple[list[Item], list[tuple[int, int]]]) -> None:
    items, pairs = graph
    drawing = arrange(items, pairs)
    place = {box.item.key: box for box in drawing.boxes}
    assert len(drawing.boxes) == len(items)
    assert len(drawing.paths) == len(pairs)
    for before, after in pairs:
        assert place[before].x + NODE_WIDTH < place[after].x
    for one, other in itertools.combinations(drawing.boxes, 2):
        assert one.x != other.x or abs(one.y - other.y) >= NODE_HEIGHT
    for box in drawing.boxes:
        assert MARGIN <= box.x <= drawing.width - NODE_WIDTH
        assert MARGIN <= box.y <= drawing.height - NODE_HEIGHT


@given(graphs())
@settings(max_examples=100)
def test_no_edge_runs_beneath_a_node(graph: tuple[list[Item], list[tuple[int, int]]]) -> None:
    drawing = arrange(*graph)
    for path, _, _ in drawing.paths:
        for x0, x1, y in _level_parts(path):
            for box in drawing.boxes:
                inside = box.x < (x0 + x1) / 2 < box.x + NODE_WIDTH
                assert not (inside and box.y < y < box.y + NODE_HEIGHT)


def test_a_chain_is_straight() -> None:
    drawing = arrange([item(n) for n in range(4)], [(0, 1), (1, 2), (2, 3)])
    assert len({box.y for box in drawing.boxes}) == 1


def test_two_crossed_edges_are_untangled() -> None:
    drawing = arrange([item(n) for n in range(4)], [(0, 3), (1, 2)])
    y = {box.item.key: box.y for box in drawing.boxes}
    assert (y[0] < y[1]) == (y[3] < y[2])


def test_two_hundred_steps_are_drawn_at_once() -> None:
    pairs = [(a, b) for a in range(100) for b in range(100, 200)]
    began = time.perf_counter()
    drawing: Drawing = arrange([item(n) for n in range(200)], pairs)
    assert time.perf_counter() - began < 1.5
    assert len(drawing.paths) == 10_000


def _level_parts(path: str) -> list[tuple[float, float, float]]:
    """The horizontal lines of a path: from x, to x, at y."""
    parts = []
    x = y = 0.0
    for letter, numbers in re.findall(r"([MCH])([-\d. ]+)", path):
        given = [float(n) for n in numbers.split()]
        if letter == "H":
            parts.append((x, given[0], y))
            x = given[0]
        else:
            x, y = given[-2:]
    return parts
