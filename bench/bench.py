"""What a scenario is given: how long to take, and where."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from bench.figures import Figure, Goal
from bench.platform.platform import Platform
from bench.usage import Meter


@dataclass(frozen=True, slots=True, kw_only=True)
class Scale:
    """How much of everything."""

    repeats: int
    seconds: float
    """Of a measurement that has no end of its own."""
    queued: int
    """Steps that wait when dispatch begins."""
    samples: int
    """Of a latency."""
    deep: int
    """Steps of the deep queue."""
    log_mb: int
    life_s: float
    """Of the full life."""


QUICK = Scale(
    repeats=1, seconds=2, queued=10_000, samples=30, deep=50_000, log_mb=50, life_s=5
)  # fmt: skip
USUAL = Scale(
    repeats=5, seconds=8, queued=50_000, samples=200, deep=1_000_000, log_mb=500, life_s=30
)  # fmt: skip


@dataclass(slots=True, kw_only=True)
class Bench:
    """One run of the program."""

    scale: Scale
    platform: Platform
    folder: Path
    figures: dict[str, Figure] = field(default_factory=dict)
    say: Callable[[str], None] = print

    def meter(self) -> Meter:
        return Meter(self.platform.roles)

    def figure(
        self,
        name: str,
        unit: str,
        values: Sequence[float],
        meter: Meter,
        *,
        goal: Goal | None = None,
        note: str = "",
        raw: str = "",
        operations: float = 0.0,
    ) -> Figure:
        """Keep a figure and say it at once."""
        made = Figure(
            name=name,
            unit=unit,
            values=list(values),
            goal=goal,
            costs=meter.costs,
            wall_s=meter.wall_s,
            load=meter.load,
            note=note,
            raw=raw,
            operations=operations,
        )
        self.figures[name] = made
        return made


Scenario = Callable[[Bench], Awaitable[None]]
