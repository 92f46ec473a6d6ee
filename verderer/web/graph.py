"""Draws a run's graph from left to right: which node stands where, and how the edges run.

Nodes go into the column after the last thing they need; inside a column they are ordered so that
edges cross little (barycentres, a few sweeps each way). An edge over several columns keeps a lane
free in each of them, so no edge runs beneath a node.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Final

from verderer.store.views.steps import Edge, Shown, StepRow
from verderer.web.states import ORDER

NODE_WIDTH: Final = 164
NODE_HEIGHT: Final = 44
LANE_HEIGHT: Final = 12
COLUMN_GAP: Final = 36
ROW_GAP: Final = 10
MARGIN: Final = 4
COLLAPSE_ABOVE: Final = 60
_SWEEPS: Final = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class Item:
    """Something to be placed: a step, or all instances of one step with a matrix."""

    key: int
    """Index of the step, or of the first instance."""
    label: str
    shown: str
    steps: tuple[int, ...]
    counts: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class Box:
    """An item with its place, in pixels."""

    item: Item
    x: int
    y: int


@dataclass(frozen=True, slots=True)
class Drawing:
    """Everything that the template draws."""

    boxes: tuple[Box, ...]
    paths: tuple[tuple[str, int, int], ...]
    """SVG path, and the keys at its two ends."""
    width: int
    height: int
    collapsed: bool


def draw(steps: Sequence[StepRow], edges: Iterable[Edge]) -> Drawing:
    """Place the graph of a run; instances of one matrix are one box when there are very many."""
    collapsed = len(steps) > COLLAPSE_ABOVE
    items, home = _items(steps, collapsed=collapsed)
    pairs = sorted({(home[e.step], home[e.successor]) for e in edges})
    return arrange(items, [p for p in pairs if p[0] != p[1]], collapsed=collapsed)


def arrange(
    items: Sequence[Item], pairs: Sequence[tuple[int, int]], *, collapsed: bool = False
) -> Drawing:
    """Place `items`; `pairs` are keys of (before, after) and form no cycle."""
    column = _columns([item.key for item in items], pairs)
    chains, columns = _with_lanes(items, pairs, column)
    _untangle(columns, chains)
    y, height = _heights(columns)
    step_x = NODE_WIDTH + COLUMN_GAP
    boxes = tuple(Box(i, MARGIN + column[i.key] * step_x, y[i.key, 0]) for i in items)
    paths = tuple(
        (_path(chain, column[chain[0][0]], y), chain[0][0], chain[-1][0]) for chain in chains
    )
    width = MARGIN * 2 + len(columns) * step_x - COLUMN_GAP if columns else 0
    return Drawing(boxes, paths, width, height, collapsed)


_Spot = tuple[int, int]
"""(key, 0) is a node; (n, m) with m > 0 a lane of the n-th edge in column m."""


def _items(steps: Sequence[StepRow], *, collapsed: bool) -> tuple[list[Item], dict[int, int]]:
    groups: defaultdict[object, list[StepRow]] = defaultdict(list)
    for step in steps:
        many = collapsed and step.matrix is not None
        groups[("all", step.template) if many else step.idx].append(step)
    items = [_item(group) for group in groups.values()]
    home = {idx: item.key for item in items for idx in item.steps}
    return items, home


def _item(group: Sequence[StepRow]) -> Item:
    counts = Counter(str(step.shown) for step in group)
    first = group[0]
    label = first.name
    if len(group) > 1:
        label = first.name.rsplit("-", 1)[0]
    return Item(
        key=first.idx,
        label=label,
        shown=next((s for s in ORDER if counts[s]), str(Shown.WAITING)),
        steps=tuple(step.idx for step in group),
        counts={state: counts[state] for state in ORDER if counts[state]},
    )


def _columns(keys: Sequence[int], pairs: Sequence[tuple[int, int]]) -> dict[int, int]:
    """The longest way from a start, for each key."""
    after: defaultdict[int, list[int]] = defaultdict(list)
    open_needs: Counter[int] = Counter()
    for a, b in pairs:
        after[a].append(b)
        open_needs[b] += 1
    column = dict.fromkeys(keys, 0)
    ready = [key for key in keys if not open_needs[key]]
    while ready:
        key = ready.pop()
        for successor in after[key]:
            column[successor] = max(column[successor], column[key] + 1)
            open_needs[successor] -= 1
            if not open_needs[successor]:
                ready.append(successor)
    return column


def _with_lanes(
    items: Sequence[Item], pairs: Sequence[tuple[int, int]], column: Mapping[int, int]
) -> tuple[list[list[_Spot]], list[list[_Spot]]]:
    columns: list[list[_Spot]] = [[] for _ in range(max(column.values(), default=-1) + 1)]
    for item in items:
        columns[column[item.key]].append((item.key, 0))
    chains = []
    for number, (a, b) in enumerate(pairs):
        lanes = [(-1 - number, c) for c in range(column[a] + 1, column[b])]
        for spot in lanes:
            columns[spot[1]].append(spot)
        chains.append([(a, 0), *lanes, (b, 0)])
    return chains, columns


def _untangle(columns: list[list[_Spot]], chains: Sequence[Sequence[_Spot]]) -> None:
    """Order each column by the mean place of its neighbours in the one before, then after."""
    before: defaultdict[_Spot, list[_Spot]] = defaultdict(list)
    behind: defaultdict[_Spot, list[_Spot]] = defaultdict(list)
    for chain in chains:
        for a, b in pairwise(chain):
            before[b].append(a)
            behind[a].append(b)
    for sweep in range(_SWEEPS):
        forth = sweep % 2 == 0
        neighbours = before if forth else behind
        order = columns if forth else list(reversed(columns))
        for fixed, moving in pairwise(order):
            place = {spot: i for i, spot in enumerate(fixed)}
            now = {spot: i for i, spot in enumerate(moving)}
            moving.sort(key=lambda s: (_mean(place, neighbours[s], now[s]), now[s]))


def _mean(place: Mapping[_Spot, int], neighbours: Sequence[_Spot], otherwise: int) -> float:
    known = [place[n] for n in neighbours if n in place]
    return sum(known) / len(known) if known else float(otherwise)


def _heights(columns: Sequence[Sequence[_Spot]]) -> tuple[dict[_Spot, int], int]:
    """The upper edge of every spot, columns centred on each other, and the height of it all."""
    tall = [sum(_tall(s) + ROW_GAP for s in column) - ROW_GAP for column in columns]
    height = max(tall, default=0)
    y: dict[_Spot, int] = {}
    for column, own in zip(columns, tall, strict=True):
        at = MARGIN + (height - own) // 2
        for spot in column:
            y[spot] = at
            at += _tall(spot) + ROW_GAP
    return y, height + 2 * MARGIN


def _tall(spot: _Spot) -> int:
    return LANE_HEIGHT if spot[0] < 0 else NODE_HEIGHT


def _path(chain: Sequence[_Spot], first: int, y: Mapping[_Spot, int]) -> str:
    """A smooth line from the right side of the first node to the left side of the last one."""
    step_x = NODE_WIDTH + COLUMN_GAP
    middle = [y[spot] + _tall(spot) // 2 for spot in chain]
    x = MARGIN + first * step_x + NODE_WIDTH
    parts = [f"M{x} {middle[0]}"]
    for n in range(1, len(chain)):
        parts.append(
            f"C{x + COLUMN_GAP // 2} {middle[n - 1]} {x + COLUMN_GAP // 2} {middle[n]}"
            f" {x + COLUMN_GAP} {middle[n]}"
        )
        x += COLUMN_GAP
        if n < len(chain) - 1:
            x += NODE_WIDTH
            parts.append(f"H{x}")
    return "".join(parts)
