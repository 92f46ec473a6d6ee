"""Time bars: when each step waited and ran, on one scale for the whole run."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from verderer.store.views.steps import StepRow

WIDE: Final = 1000
"""Bars are drawn in thousandths of the whole."""
_STEPS: Final = (1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 14400, 43200, 86400)


@dataclass(frozen=True, slots=True, kw_only=True)
class Bar:
    """One step's time; the ends of what did not happen are equal."""

    step: StepRow
    wait_x: float
    wait_width: float
    run_x: float
    run_width: float
    seconds: float | None
    """How long its newest attempt has run or ran."""


@dataclass(frozen=True, slots=True)
class Timeline:
    """Bars with the marks of their scale: (place, seconds since the start)."""

    bars: tuple[Bar, ...]
    marks: tuple[tuple[float, int], ...]


def measure(
    steps: Sequence[StepRow], *, start: datetime, end: datetime | None, now: datetime
) -> Timeline:
    """Bars of `steps` between the start of the run and its end, or now."""
    whole = max(((end or now) - start) / timedelta(seconds=1), 1.0)
    bars = tuple(_bar(step, start, whole, now) for step in steps)
    unit = next((s for s in _STEPS if whole / s <= 8), round(whole / 8))
    marks = tuple((WIDE * at / whole, at) for at in range(0, int(whole) + 1, unit))
    return Timeline(bars, marks)


def _bar(step: StepRow, start: datetime, whole: float, now: datetime) -> Bar:
    attempt = step.attempt
    began = (attempt.started_at or attempt.assigned_at) if attempt else None
    ended = attempt.ended_at if attempt else step.ended_at
    wait_from = step.ready_at
    wait_to = began or step.ended_at or (now if step.ready_at else None)

    def place(at: datetime | None) -> float:
        seconds = (at - start) / timedelta(seconds=1) if at else 0.0
        return round(WIDE * min(max(seconds / whole, 0.0), 1.0), 1)

    waits = wait_from is not None and wait_to is not None
    running = (ended or now) - began if began else None
    return Bar(
        step=step,
        wait_x=place(wait_from),
        wait_width=max(0.0, place(wait_to) - place(wait_from)) if waits else 0.0,
        run_x=place(began),
        run_width=max(3.0, place(ended or now) - place(began)) if began else 0.0,
        seconds=running / timedelta(seconds=1) if running is not None else None,
    )
