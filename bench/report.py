"""The table for people and the document for machines."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path

from rich.console import Console
from rich.table import Table

from bench.figures import Figure, number
from bench.machine import Machine


def show(machine: Machine, figures: Mapping[str, Figure], console: Console) -> None:
    """Print everything, reached or not."""
    console.print("  ".join(machine.lines()), style="dim")
    table = Table(box=None, pad_edge=False, header_style="bold")
    for title in ("measure", "median", "min … max", "goal", "", "peer", "of raw", "alone", "load"):
        numeric = title in ("median", "min … max", "of raw", "alone", "load")
        table.add_column(title, justify="right" if numeric else "left", overflow="fold")
    for figure in figures.values():
        table.add_row(*_cells(figure, figures, machine.cores))
    console.print(table)
    console.print(
        "alone: the bound that the CPU used sets on a machine that does nothing else; "
        "load: of the machine when it began",
        style="dim",
    )
    console.print(_costs(figures))


def _cells(figure: Figure, figures: Mapping[str, Figure], cores: int) -> list[str]:
    several = len(figure.values) > 1
    colour = {"reached": "green", "NOT reached": "red"}.get(figure.verdict, "")
    verdict = f"[{colour}]{figure.verdict}[/]" if colour else ""
    return [
        figure.name,
        f"{number(figure.median)} {figure.unit}",
        f"{number(min(figure.values))} … {number(max(figure.values))}" if several else "",
        str(figure.goal or ""),
        verdict,
        figure.goal.peer if figure.goal else "",
        _ratio(figure, figures),
        number(figure.alone(cores)) if figure.operations else "",
        f"{figure.load:.1f}",
    ]


def _ratio(figure: Figure, figures: Mapping[str, Figure]) -> str:
    raw = figures.get(figure.raw)
    return f"{100 * figure.median / raw.median:.0f} %" if raw and raw.median else ""


def _costs(figures: Mapping[str, Figure]) -> Table:
    """CPU and memory by role."""
    roles = sorted({role for figure in figures.values() for role in figure.costs})
    table = Table(box=None, pad_edge=False, header_style="bold", title_justify="left")
    table.title = "CPU (µs for each of a throughput, else cores busy) / most resident MiB, by role"
    table.add_column("measure", overflow="fold")
    for role in roles:
        table.add_column(role, justify="right")
    for figure in figures.values():
        if figure.wall_s:
            table.add_row(figure.name, *(_cost(figure, role) for role in roles))
    return table


def _cost(figure: Figure, role: str) -> str:
    cost = figure.costs.get(role)
    if cost is None:
        return ""
    if figure.operations:
        used = f"{cost.cpu_s * 1e6 / figure.operations:.0f} µs"
    else:
        used = f"{cost.cpu_s / figure.wall_s:.2f}"
    return f"{used} / {cost.rss_mib:.0f}" if cost.rss_mib else used


def write(path: Path, machine: Machine, figures: Mapping[str, Figure]) -> None:
    """Everything that was measured, as JSON."""
    path.parent.mkdir(parents=True, exist_ok=True)
    document = {
        "machine": asdict(machine),
        "figures": [
            asdict(figure) | {"median": figure.median, "verdict": figure.verdict}
            for figure in figures.values()
        ],
    }
    path.write_text(json.dumps(document, indent=2, default=str) + "\n")
