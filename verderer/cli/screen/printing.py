"""Results on standard output, as a table, JSON or YAML."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from enum import StrEnum
from typing import Annotated, Any

import typer

from verderer.cli.screen.tables import Cell, Column, table
from verderer.cli.screen.terminal import Tone, clean, paint, width


class Format(StrEnum):
    """How results are written."""

    TABLE = "table"
    JSON = "json"
    YAML = "yaml"


OutputOption = Annotated[
    Format,
    typer.Option("--output", "-o", help="How the result is written.", show_default=True),
]


def print_document(value: Any, form: Format) -> None:
    """A document, or a list of them, for programs."""
    import msgspec

    if form is Format.YAML:
        import yaml

        built = msgspec.to_builtins(value)
        sys.stdout.write(yaml.safe_dump(built, sort_keys=False, allow_unicode=True, width=10_000))
    else:
        text = msgspec.json.format(msgspec.json.encode(value), indent=2).decode()
        # A terminal acts upon C1 controls, which JSON leaves as they are.
        sys.stdout.write(_escaped(text) + "\n")
    sys.stdout.flush()


def print_table(
    columns: Sequence[Column], rows: Sequence[Sequence[Cell | str]], *, empty: str
) -> None:
    """Rows for people; `empty` says what there is to do when there are none."""
    if not rows:
        print(paint(empty, Tone.DIM))
        return
    print("\n".join(table(columns, rows, fit=width())))


def print_facts(facts: Sequence[tuple[str, Cell | str]]) -> None:
    """Names with their values, one a line; empty values are left out."""
    shown = [(name, one) for name, one in facts if (one.text if isinstance(one, Cell) else one)]
    longest = max((len(name) for name, _ in shown), default=0)
    for name, one in shown:
        cell = one if isinstance(one, Cell) else Cell(one)
        label = paint(name.ljust(longest), Tone.DIM)
        print(f"{label}  {paint(clean(cell.text), cell.tone)}")


def _escaped(text: str) -> str:
    if text.isascii():
        return text
    return "".join(f"\\u{ord(c):04x}" if "\x7f" <= c <= "\x9f" else c for c in text)
