"""Dominant shares and their decay."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from verderer.core.governance.model import Holding
from verderer.core.governance.shares import HALF_LIFE_S, decayed_mean, dominant, standing


def test_the_resource_with_the_largest_part_counts() -> None:
    assert dominant({"cpu": 10, "gpu": 2}, {"cpu": 100, "gpu": 4}) == 0.5
    assert dominant({"tpu": 7}, {"cpu": 100}) == 0.0
    assert dominant({}, {}) == 0.0


def test_now_and_lately_count_alike() -> None:
    assert standing({"gpu": Holding(8, 4)}) == {"gpu": 6.0}


def test_half_of_it_is_forgotten_after_the_half_life() -> None:
    assert decayed_mean(8.0, 0, HALF_LIFE_S) == pytest.approx(4.0)
    assert decayed_mean(0.0, 8, HALF_LIFE_S) == pytest.approx(4.0)
    assert decayed_mean(5.0, 9, -3.0) == 5.0


@given(st.floats(0, 1e9), st.integers(0, 10**9), st.floats(0, 1e6), st.floats(0, 1e6))
def test_it_does_not_matter_in_how_many_pieces_time_passes(
    mean: float, reserved: int, first: float, then: float
) -> None:
    at_once = decayed_mean(mean, reserved, first + then)
    in_two = decayed_mean(decayed_mean(mean, reserved, first), reserved, then)
    assert in_two == pytest.approx(at_once, abs=1e-3)
    assert min(mean, reserved) - 1e-3 <= at_once <= max(mean, reserved) + 1e-3
