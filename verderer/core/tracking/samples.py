"""Samples of metrics: which is the latest, and how a batch of them is packed for the store."""

from __future__ import annotations

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
class Columns:
    """A batch of samples as parallel columns of one length, since very many pass here."""

    keys: Sequence[str] = ()
    values: Sequence[float] = ()
    times_ms: Sequence[int] = ()
    steps: Sequence[int] = ()

    def __len__(self) -> int:
        return len(self.keys)

    def __getitem__(self, i: int) -> Sample:
        return Sample(self.keys[i], self.values[i], self.times_ms[i], self.steps[i])


NO_SAMPLES = Columns()


def columns_of(samples: Sequence[Sample]) -> Columns:
    """The same batch, laid out in columns."""
    return Columns(*zip(*samples, strict=True)) if samples else Columns()


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
    return (sample.step, sample.at_ms, _rank(sample.value))


def pack(batch: Columns) -> Packed:
    """Lay a batch out for the store. A sample that is in it twice stays so: readers see it once.

    The keys come out sorted, so that two writers of one run lock its series in the same order.
    """
    places: dict[str, list[int]] = {}
    for i, key in enumerate(batch.keys):
        if (found := places.get(key)) is None:
            places[key] = [i]
        else:
            found.append(i)
    packed = Packed([], [], [], [], [], [], [], [], [], [])
    for key in sorted(places):
        _pack_one(packed, key, batch, places[key])
    return packed


def _pack_one(packed: Packed, key: str, batch: Columns, places: list[int]) -> None:
    steps = [batch.steps[i] for i in places]
    times_ms = [batch.times_ms[i] for i in places]
    values = [batch.values[i] for i in places]
    step, at_ms = (
        (steps[0], times_ms[0]) if len(places) == 1 else max(zip(steps, times_ms, strict=True))
    )
    packed.keys.append(key)
    packed.last_steps.append(step)
    packed.last_times_ms.append(at_ms)
    packed.last_values.append(_latest(step, at_ms, steps, times_ms, values))
    first = len(packed.steps)
    packed.steps.extend(steps)
    packed.times_ms.extend(times_ms)
    packed.values.extend(values)
    for start in range(first, first + len(places), PACK):
        packed.row_keys.append(key)
        packed.row_from.append(start + 1)
        packed.row_to.append(min(start + PACK, first + len(places)))


def _latest(
    step: int, at_ms: int, steps: list[int], times_ms: list[int], values: list[float]
) -> float:
    """The value of that moment, the highest if there are several."""
    if len(values) == 1:
        return values[0]
    at_once = [
        value
        for value, s, t in zip(values, steps, times_ms, strict=True)
        if s == step and t == at_ms
    ]
    return max(at_once, key=_rank)


def _rank(value: float) -> float:
    return value if value == value else 0.0
