"""Reconciliation as a table: what is wanted, what is seen, what is held, and what follows."""

from __future__ import annotations

import pytest

from verderer.agent.orders import Actions, Desired, Held, Phase, diff, note_presence
from verderer.core.model.attempt import AttemptKey, AttemptState, End, EndCause
from verderer.drivers.contract import Observed
from verderer.wire.agent import Launch, Order, SyncResponse

KEY = AttemptKey(1, 0, 1)
LAUNCH = Launch(run_name="r", step="s", project="p")
GO = Order(key=str(KEY), revision=1, launch=LAUNCH)
END = Order(key=str(KEY), revision=2)
RUNS = Observed(key=KEY, state=AttemptState.RUNNING)
OVER = Observed(key=KEY, state=AttemptState.FAILED, end=End(cause=EndCause.EXIT, exit_code=1))


def decide(
    order: Order | None, seen: Observed | None, mine: Held | None, *, whole: bool = True
) -> dict[str, int]:
    desired = Desired(epoch=1, whole=whole)
    if order is not None:
        desired.orders[KEY] = order
    observed = {KEY: seen} if seen is not None else {}
    held = {KEY: mine} if mine is not None else {}
    actions = diff(desired, observed, held, now=100.0, settle_s=10.0)
    return {name: len(found) for name in Actions.__slots__ if (found := getattr(actions, name))}


def launched(**more: object) -> Held:
    return Held(phase=Phase.LAUNCHED, **more)  # type: ignore[arg-type]


def ended(**more: object) -> Held:
    return Held(phase=Phase.ENDED, **more)  # type: ignore[arg-type]


CASES = {
    "what is wanted and was never seen is started": (GO, None, None, {"start"}),
    "a stop for what was never seen is answered at once": (END, None, None, {"cancel"}),
    "what runs and is not held is adopted, not started": (GO, RUNS, None, {"adopt"}),
    "what runs and nobody wants is adopted to be stopped": (None, RUNS, None, {"adopt"}),
    "what is being prepared goes on": (GO, None, Held(phase=Phase.PREPARING), set()),
    "what is being prepared and must end is cancelled": (
        END,
        None,
        Held(phase=Phase.PREPARING),
        {"cancel"},
    ),
    "what is being launched is left alone even when it must end": (
        END,
        None,
        Held(phase=Phase.LAUNCHING),
        set(),
    ),
    "what runs as wanted is left alone": (GO, RUNS, launched(), set()),
    "what runs and must end is stopped": (END, RUNS, launched(), {"stop"}),
    "what runs and has been stopped is not stopped again": (
        END,
        RUNS,
        launched(stopping=True),
        set(),
    ),
    "what runs and is in no full set is stopped": (None, RUNS, launched(), {"stop"}),
    "what was launched and is missing for a moment is left alone": (
        GO,
        None,
        launched(absent_since=95.0),
        set(),
    ),
    "what was launched and is missing for long is lost": (
        GO,
        None,
        launched(absent_since=90.0),
        {"lost"},
    ),
    "what was stopped, never confirmed and is missing for long was cancelled": (
        END,
        None,
        launched(absent_since=90.0, confirmed=False, stopping=True),
        {"cancel"},
    ),
    "what is over is ended": (GO, OVER, launched(), {"ended"}),
    "what is over while its launch is not answered is ended": (
        GO,
        OVER,
        Held(phase=Phase.LAUNCHING),
        {"ended"},
    ),
    "what has ended waits for the report": (GO, OVER, ended(shipped=True), set()),
    "what has ended waits for its log": (GO, OVER, ended(reported=True), set()),
    "what has ended and is safe is forgotten": (
        None,
        OVER,
        ended(reported=True, shipped=True),
        {"forget"},
    ),
    "what is being forgotten is not forgotten twice": (
        None,
        OVER,
        ended(reported=True, shipped=True, forgetting=True),
        set(),
    ),
    "what was declared ended and lives is stopped": (None, RUNS, ended(), {"stop"}),
    "what stores its outputs and must end is cancelled": (
        END,
        OVER,
        ended(storing=True),
        {"cancel"},
    ),
}


@pytest.mark.parametrize("case", CASES.values(), ids=CASES.keys())
def test_one_attempt(case: tuple[Order | None, Observed | None, Held | None, set[str]]) -> None:
    order, seen, mine, expected = case
    assert decide(order, seen, mine) == dict.fromkeys(expected, 1)


def test_before_a_full_set_nothing_is_an_orphan() -> None:
    assert decide(None, RUNS, None, whole=False) == {}
    assert decide(None, RUNS, launched(), whole=False) == {}


def test_an_observation_from_before_the_launch_proves_nothing() -> None:
    held = launched(proof=5)
    note_presence(held, present=False, number=4, now=1.0)
    assert held.absent_since is None
    note_presence(held, present=False, number=5, now=2.0)
    assert held.absent_since == 2.0
    note_presence(held, present=True, number=6, now=3.0)
    assert held.absent_since is None


def test_an_answer_of_another_epoch_changes_nothing() -> None:
    desired = Desired(epoch=2)
    answer = SyncResponse(epoch=1, revision=9, full=True, orders=[GO])
    assert desired.apply(answer, asked=desired.ask()) == set()
    assert (desired.orders, desired.revision, desired.whole) == ({}, 0, False)


def test_a_stop_is_never_taken_back() -> None:
    desired = Desired(epoch=1)
    for order in (END, Order(key=str(KEY), revision=3, launch=LAUNCH)):
        answer = SyncResponse(epoch=1, revision=order.revision, orders=[order])
        desired.apply(answer, asked=desired.ask())
    assert desired.orders[KEY].launch is None


def test_an_answer_composed_before_the_end_was_known_does_not_revive_it() -> None:
    desired = Desired(epoch=1)
    slow = desired.ask()
    desired.finish(KEY)
    desired.apply(SyncResponse(epoch=1, revision=1, full=True, orders=[GO]), asked=slow)
    assert KEY not in desired.orders


def test_a_full_set_drops_what_it_does_not_name() -> None:
    desired = Desired(epoch=1)
    desired.apply(SyncResponse(epoch=1, revision=1, orders=[GO]), asked=desired.ask())
    changed = desired.apply(
        SyncResponse(epoch=1, revision=2, full=True, orders=[]), asked=desired.ask()
    )
    assert (changed, desired.orders) == ({KEY}, {})


def test_a_key_that_names_no_attempt_is_set_aside() -> None:
    desired = Desired(epoch=1)
    orders = [Order(key="../x", revision=1), GO]
    desired.apply(SyncResponse(epoch=1, revision=1, orders=orders), asked=desired.ask())
    assert (set(desired.orders), desired.unreadable) == ({KEY}, {"../x"})


def test_a_set_that_comes_in_parts_is_whole_when_an_answer_brings_nothing_new() -> None:
    desired = Desired(epoch=1)
    other = AttemptKey(2, 0, 1)
    parts = [
        SyncResponse(epoch=1, revision=1, orders=[GO]),
        SyncResponse(epoch=1, revision=2, orders=[Order(key=str(other), revision=2)]),
    ]
    for part in parts:
        desired.apply(part, asked=desired.ask())
        assert not desired.whole
    desired.apply(SyncResponse(epoch=1, revision=2), asked=desired.ask())
    assert desired.whole
    assert set(desired.orders) == {KEY, other}
