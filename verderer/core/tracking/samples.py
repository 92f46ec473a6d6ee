"""Samples of metrics: which is the latest, and how a batch of them is packed for the store."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

PACK = 72
"""Samples in one stored row; the migration says why."""


class Sample(NamedTuple):
    """One value of one metric."""

    key: str
    value: float
    """NaN and the infinities are values like others."""
    at_ms: int
    """When, in milliseconds since 1970, as the client says."""
    step: int = 0


class Point(NamedTuple):
    """A sample of a metric that is already known."""

    step: int
    at_ms: int
    value: float


@dataclass(frozen=True, slots=True)
class Packed:
    """A batch, sorted by key and laid out in columns; parallel lists of the same length.

    `keys` to `last_values` hold one entry for each key, its latest sample. `row_keys`, `row_from`
    and `row_to` cut `steps`, `times_ms` and `values` into rows of at most `PACK` samples of one
    key; positions count from 1 and are inclusive, as SQL slices arrays.
    """

    keys: list[str]
    last_steps: list[int]
    last_times_ms: list[int]
    last_values: list[float]
    row_keys: list[str]
    row_from: list[int]
    row_to: list[int]
    steps: list[int]
    times_ms: list[int]
    values: list[float]


def recency(sample: Sample | Point) -> tuple[int, int, float]:
    """What the latest sample is the greatest by: step, then time, then value, NaN being 0."""
    return (sample.step, sample.at_ms, 0.0 if math.isnan(sample.value) else sample.value)


def pack(samples: Sequence[Sample]) -> Packed:
    """Lay a batch out for the store; a sample that is in it twice is kept once.

    The keys come out sorted, so that two writers of one run lock its series in the same order.
    """
    by_key: dict[str, list[Sample]] = {}
    for sample in samples:
        by_key.setdefault(sample.key, []).append(sample)
    packed = Packed([], [], [], [], [], [], [], [], [], [])
    for key in sorted(by_key):
        _pack_one(packed, key, _once(by_key[key]))
    return packed


def _once(samples: list[Sample]) -> list[Sample]:
    if len(samples) == 1:
        return samples
    # NaN differs from itself, so it is told apart by its name.
    seen = {(s.step, s.at_ms, s.value if s.value == s.value else "NaN"): s for s in samples}
    return list(seen.values())


def _pack_one(packed: Packed, key: str, samples: list[Sample]) -> None:
    last = max(samples, key=recency)
    packed.keys.append(key)
    packed.last_steps.append(last.step)
    packed.last_times_ms.append(last.at_ms)
    packed.last_values.append(last.value)
    first = len(packed.steps)
    packed.steps.extend([s.step for s in samples])
    packed.times_ms.extend([s.at_ms for s in samples])
    packed.values.extend([s.value for s in samples])
    for start in range(first, first + len(samples), PACK):
        packed.row_keys.append(key)
        packed.row_from.append(start + 1)
        packed.row_to.append(min(start + PACK, first + len(samples)))
