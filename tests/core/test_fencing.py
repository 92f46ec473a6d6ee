"""When another attempt may start: tables, and the law that no two of a step ever run at once."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from verderer.core.fencing import (
    LEASE_S,
    MARGIN_S,
    Fenced,
    Silence,
    Waits,
    behind_fence,
    fence_s,
    lease_left,
)
from verderer.core.pipeline.spec import OnClusterLost

WAIT, RERUN = OnClusterLost.WAIT, OnClusterLost.RERUN


def silence(s: float, *, stops: float | None = 45.0, covered: bool = True) -> Silence:
    return Silence(silent_s=s, stops_within_s=stops, under_promise=covered)


@pytest.mark.parametrize(
    ("policy", "known", "expected"),
    [
        pytest.param(WAIT, silence(1e6), Waits(None), id="what waits is never given up"),
        pytest.param(RERUN, silence(1e6, stops=None), Waits(None), id="nobody promises anything"),
        pytest.param(RERUN, silence(1e6, covered=False), Waits(None), id="it is from before that"),
        pytest.param(RERUN, silence(20), Waits(100.0), id="so many seconds are left"),
        pytest.param(RERUN, silence(120), Waits(0.0), id="not before the bound has passed"),
        pytest.param(RERUN, silence(120.1), Fenced(), id="behind the fence"),
    ],
)
def test_behind_fence(policy: OnClusterLost, known: Silence, expected: Fenced | Waits) -> None:
    assert behind_fence(policy, known) == expected


@given(
    stops=st.floats(0, 600),
    seen=st.floats(0, 1000),
    answered=st.floats(0, 60),
    travel=st.floats(0, 60),
    drift=st.floats(-0.05, 0.05),
    jump=st.floats(0, 5),
    more=st.floats(0.001, 1000),
)
def test_behind_a_fence_nothing_under_a_lease_runs(
    *,
    stops: float,
    seen: float,
    answered: float,
    travel: float,
    drift: float,
    jump: float,
    more: float,
) -> None:
    """Real time, as nobody's clock shows it: the agent's runs wrong, the database's jumps ahead.

    The last heartbeat on record is of `seen`. A request was sent at or after that moment at most
    and answered by what was on record then; the agent counts from when it sent it.
    """
    stops = min(stops, 0.8 * MARGIN_S / 0.05 - LEASE_S if drift < 0 else stops)
    # One margin is for both: what a slow clock takes of it is not there for a jump any more.
    jump = min(jump, MARGIN_S - max(0.0, -drift) * (LEASE_S + stops) / (1 + drift))
    sent = seen + answered
    read = sent + travel  # when the database was asked
    lease_s = lease_left(read - seen)
    if lease_s <= 0:
        return
    ends = sent + (lease_s + stops) / (1 + drift)  # a clock that runs slow makes it later
    fenced_at = seen + fence_s(stops) - jump + more
    known = silence(fenced_at + jump - seen, stops=stops)
    if isinstance(behind_fence(RERUN, known), Fenced):
        assert ends <= fenced_at
