"""Reasons: complete, stable, and with their numbers."""

from __future__ import annotations

import pytest

from verderer.core.explain import Reason, Why


@pytest.mark.parametrize("why", list(Why))
def test_every_code_has_a_sentence_and_survives_a_row(why: Why) -> None:
    reason = Reason(
        why=why,
        cluster="c",
        resource="nvidia.com/gpu",
        asked=8000,
        free=3000,
        total=16000,
        seconds=4,
        others=("prepare",),
    )
    assert reason.message
    assert Reason.from_dict(reason.as_dict()) == reason


def test_the_numbers_stand_in_the_sentence_and_the_change_is_the_difference() -> None:
    reason = Reason(
        why=Why.CAPACITY, cluster="c", resource="nvidia.com/gpu", asked=8000, free=3000, total=16000
    )
    assert reason.message == "asks 8 nvidia.com/gpu; 3 of 16 nvidia.com/gpu is free"
    assert reason.change == "5 more nvidia.com/gpu free would start it"
