"""Tables that fit: columns shrink or are left out by priority, rows never wrap."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from verderer.cli.screen.terminal import Tone, clean, paint

_GAP = 2
_SMALLEST = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class Column:
    """One column of a table."""

    title: str
    rank: int = 0
    """Where room is short the highest goes first; 0 always stays."""
    shrinks: bool = False
    """May be cut to what is left."""
    least: int = _SMALLEST
    """To make it shorter than this, others are left out first."""
    right: bool = False


@dataclass(frozen=True, slots=True)
class Cell:
    """Some text in some tone."""

    text: str
    tone: Tone = Tone.PLAIN


def table(
    columns: Sequence[Column], rows: Sequence[Sequence[Cell | str]], *, fit: int | None
) -> list[str]:
    """The lines of a table at most `fit` characters wide (None: as wide as it is)."""
    cells = [[_cell(one) for one in row] for row in rows]
    natural = [
        max([_long(column.title), *(_long(row[i].text) for row in cells)])
        for i, column in enumerate(columns)
    ]
    shown, widths = _arrange(columns, natural, fit)
    lines = [_line([Cell(columns[i].title, Tone.DIM) for i in shown], columns, shown, widths)]
    lines += [_line([row[i] for i in shown], columns, shown, widths) for row in cells]
    return lines


def cut(text: str, most: int) -> str:
    """The text in at most `most` columns of a terminal."""
    if _long(text) <= most:
        return text
    from rich.cells import set_cell_size

    return set_cell_size(text, max(0, most - 1)).rstrip() + "…" if most > 0 else ""


def _cell(one: Cell | str) -> Cell:
    return Cell(clean(one)) if isinstance(one, str) else Cell(clean(one.text), one.tone)


def _arrange(
    columns: Sequence[Column], natural: list[int], fit: int | None
) -> tuple[list[int], dict[int, int]]:
    """Which columns are shown, and how wide."""
    shown = list(range(len(columns)))
    while fit is not None:
        least = [
            min(natural[i], columns[i].least) if columns[i].shrinks else natural[i] for i in shown
        ]
        if sum(least) + _GAP * (len(shown) - 1) <= fit:
            break
        droppable = [i for i in shown if columns[i].rank]
        if not droppable:
            break
        shown.remove(max(droppable, key=lambda i: (columns[i].rank, i)))
    widths = {i: natural[i] for i in shown}
    if fit is not None:
        _shrink(columns, shown, widths, fit)
    return shown, widths


def _shrink(columns: Sequence[Column], shown: list[int], widths: dict[int, int], fit: int) -> None:
    over = sum(widths.values()) + _GAP * (len(shown) - 1) - fit
    while over > 0:
        able = [i for i in shown if columns[i].shrinks and widths[i] > columns[i].least]
        able = able or [i for i in shown if columns[i].shrinks and widths[i] > _SMALLEST]
        if not able:
            return
        widest = max(able, key=lambda i: widths[i])
        widths[widest] -= 1
        over -= 1


def _line(
    cells: list[Cell], columns: Sequence[Column], shown: list[int], widths: dict[int, int]
) -> str:
    parts = []
    for place, (i, cell) in enumerate(zip(shown, cells, strict=True)):
        text = cut(cell.text, widths[i])
        room = " " * (widths[i] - _long(text))
        last = place == len(shown) - 1
        painted = paint(text, cell.tone)
        if columns[i].right:
            parts.append(room + painted)
        else:
            parts.append(painted + ("" if last else room))
    return (" " * _GAP).join(parts).rstrip()


def _long(text: str) -> int:
    if text.isascii():
        return len(text)
    from rich.cells import cell_len

    return cell_len(text)
