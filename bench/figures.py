"""What a measurement says: values, their spread, the goal, and what it cost."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum


class Better(StrEnum):
    """Which way is good."""

    MORE = "more"
    LESS = "less"


@dataclass(frozen=True, slots=True)
class Goal:
    """A bound, and the best that a peer has published."""

    bound: float
    better: Better
    peer: str = ""

    def reached(self, value: float) -> bool:
        return value >= self.bound if self.better is Better.MORE else value <= self.bound

    def __str__(self) -> str:
        return f"{'≥' if self.better is Better.MORE else '≤'} {number(self.bound)}"


_SINGLE = ("server", "scheduler", "agent", "bench")


def at_least(bound: float, peer: str = "") -> Goal:
    return Goal(bound, Better.MORE, peer)


def at_most(bound: float, peer: str = "") -> Goal:
    return Goal(bound, Better.LESS, peer)


@dataclass(frozen=True, slots=True)
class Cost:
    """What one role used while something was measured."""

    cpu_s: float
    rss_mib: float
    """Most resident memory of its processes together; PostgreSQL's share of shared pages once."""


@dataclass(slots=True, kw_only=True)
class Figure:
    """One line of the table."""

    name: str
    unit: str
    values: list[float]
    goal: Goal | None = None
    costs: Mapping[str, Cost] = field(default_factory=dict)
    wall_s: float = 0.0
    load: float = 0.0
    """Load average of the machine when it began: above 0 others were working."""
    note: str = ""
    raw: str = ""
    """The raw limit that bounds it: the name of another figure."""
    operations: float = 0.0
    """How many were done while `costs` were counted."""

    @property
    def median(self) -> float:
        return percentile(self.values, 50)

    def alone(self, cores: int) -> float:
        """What the CPU that was used bounds it to on a machine that does nothing else.

        A role other than PostgreSQL uses one core at most, for it is one process with one thread
        that works; all of them together use all cores.
        """
        if not self.operations:
            return math.nan
        total = sum(cost.cpu_s for cost in self.costs.values())
        single = max((c.cpu_s for r, c in self.costs.items() if r in _SINGLE), default=0.0)
        return self.operations / max(total / cores, single, 1e-9)

    @property
    def verdict(self) -> str:
        if self.goal is None or not self.values:
            return ""
        return "reached" if self.goal.reached(self.median) else "NOT reached"


def percentile(values: Sequence[float], percent: float) -> float:
    """Nearest rank, so that a percentile is always a value that was measured."""
    if not values:
        return math.nan
    ordered = sorted(values)
    return ordered[max(0, math.ceil(len(ordered) * percent / 100) - 1)]


def number(value: float) -> str:
    """Three significant digits, thousands with commas."""
    if math.isnan(value):
        return "–"
    size = abs(value)
    if size >= 100:
        return f"{value:,.0f}"
    return f"{value:.1f}" if size >= 10 else f"{value:.2f}"
