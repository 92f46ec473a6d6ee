"""Samples: which is the latest, and that packing neither loses nor doubles any."""

from __future__ import annotations

import math

from hypothesis import given
from hypothesis import strategies as st

from verderer.core.tracking.samples import PACK, Packed, Point, Sample, columns_of, pack, recency

SAMPLES = st.builds(
    Sample,
    key=st.sampled_from(["a", "b", "loss/val"]),
    value=st.floats(),
    at_ms=st.integers(0, 3),
    step=st.integers(-2, 3),
)


def identity(key: str, step: int, at_ms: int, value: float) -> tuple[str, int, int, str]:
    return (key, step, at_ms, "nan" if math.isnan(value) else repr(value + 0.0))


def unpacked(packed: Packed) -> list[tuple[str, int, int, str]]:
    found = []
    for key, low, high in zip(packed.row_keys, packed.row_from, packed.row_to, strict=True):
        assert 1 <= high - low + 1 <= PACK
        found += [
            identity(key, packed.steps[i], packed.times_ms[i], packed.values[i])
            for i in range(low - 1, high)
        ]
    return found


@given(st.lists(SAMPLES, max_size=200))
def test_every_sample_is_packed_exactly_once(samples: list[Sample]) -> None:
    packed = pack(columns_of(samples))
    found = unpacked(packed)
    assert sorted(found) == sorted(identity(s.key, s.step, s.at_ms, s.value) for s in samples)
    assert len(found) == len(packed.steps)


@given(st.lists(SAMPLES, min_size=1, max_size=50))
def test_the_latest_has_the_highest_step_then_time_then_value(samples: list[Sample]) -> None:
    packed = pack(columns_of(samples))
    assert packed.keys == sorted({s.key for s in samples})
    for i, key in enumerate(packed.keys):
        latest = Point(packed.last_steps[i], packed.last_times_ms[i], packed.last_values[i])
        assert recency(latest) == max(recency(s) for s in samples if s.key == key)


def test_a_long_series_is_cut_into_rows() -> None:
    packed = pack(columns_of([Sample("a", float(i), i, i) for i in range(2 * PACK + 1)]))
    assert [high - low + 1 for low, high in zip(packed.row_from, packed.row_to, strict=True)] == [
        PACK,
        PACK,
        1,
    ]
    assert packed.last_steps == [2 * PACK]


def test_nan_counts_as_zero_among_samples_of_one_moment() -> None:
    packed = pack(columns_of([Sample("a", v, 1, 1) for v in (math.nan, 0.5, -1.0)]))
    assert packed.last_values == [0.5]
