"""Identifiers, states and places."""

from __future__ import annotations

from enum import StrEnum

import pytest
from hypothesis import given
from hypothesis import strategies as st

from verderer.core.errors import IllegalMove
from verderer.core.model.attempt import ATTEMPT_MOVES, ATTEMPT_OVER, AttemptKey, AttemptState
from verderer.core.model.ids import MAX_ID, make_run_id, parse_run_id, run_id_text
from verderer.core.model.places import log_prefix, output_key, owner_of
from verderer.core.model.run import RUN_MOVES, RUN_OVER, RunState, check_run_move
from verderer.core.model.step import STEP_MOVES, STEP_OVER, StepState, check_step_move

IDS = st.integers(0, MAX_ID)
KEYS = st.builds(AttemptKey, IDS, st.integers(0, 10_000), st.integers(1, 1000))


@given(IDS)
def test_a_run_id_survives_being_written_and_typed_with_confusable_letters(value: int) -> None:
    text = run_id_text(value)
    assert len(text) == 13
    assert parse_run_id(text) == value
    assert parse_run_id(text.upper().replace("0", "O").replace("1", "l")) == value


@given(IDS, IDS)
def test_run_ids_sort_as_they_are_written(a: int, b: int) -> None:
    assert (a < b) == (run_id_text(a) < run_id_text(b))


@given(st.text(max_size=20))
def test_any_text_is_a_run_id_or_a_value_error(text: str) -> None:
    try:
        assert 0 <= parse_run_id(text) <= MAX_ID
    except ValueError:
        pass


def test_a_later_millisecond_has_a_larger_id() -> None:
    first = make_run_id(unix_ms=1_800_000_000_000, chance=2**64 - 1)
    assert first < make_run_id(unix_ms=1_800_000_000_001, chance=0) <= MAX_ID


@given(KEYS)
def test_an_attempt_has_one_name_that_is_a_dns_label(key: AttemptKey) -> None:
    assert AttemptKey.parse(str(key)) == key
    assert len(str(key)) <= 63
    assert set(str(key)) <= set("v0123456789abcdef-")


@given(st.text(max_size=40))
def test_any_text_is_an_attempt_or_a_value_error(text: str) -> None:
    try:
        assert str(AttemptKey.parse(text)) == text
    except ValueError:
        pass


@given(st.integers(1, 10**6), KEYS, st.sampled_from(["model", "a/b/c", "0/00000000"]))
def test_an_object_belongs_to_the_attempt_that_its_key_was_made_for(
    project: int, key: AttemptKey, rest: str
) -> None:
    for made in (log_prefix(project, key) + rest, output_key(project, key, rest)):
        owner = owner_of(made)
        assert owner is not None
        assert (owner.project, owner.attempt) == (project, key)


@pytest.mark.parametrize(
    "key",
    [
        "",
        "logs/1",
        "artifacts/1/0000000000000/0/1/",
        "artifacts/+1/0000000000000/0/1/x",
        "artifacts/1/000000000000O/0/1/x",
        "artifacts/1/0000000000000/00/1/x",
        "tmp/1/0000000000000/0/1/x",
    ],
)
def test_what_is_not_spelled_as_we_spell_it_is_nobodys(key: str) -> None:
    assert owner_of(key) is None


@pytest.mark.parametrize(
    ("states", "moves", "over"),
    [
        pytest.param(RunState, RUN_MOVES, RUN_OVER, id="run"),
        pytest.param(StepState, STEP_MOVES, STEP_OVER, id="step"),
        pytest.param(AttemptState, ATTEMPT_MOVES, ATTEMPT_OVER, id="attempt"),
    ],
)
def test_every_state_has_its_moves_and_none_leads_to_itself(
    states: type[StrEnum],
    moves: dict[StrEnum, frozenset[StrEnum]],
    over: frozenset[StrEnum],
) -> None:
    assert set(moves) == set(states)
    assert all(state not in after for state, after in moves.items())
    assert over < set(states)


def test_what_is_over_stays_over_unless_a_person_retries_the_run() -> None:
    assert all(not ATTEMPT_MOVES[state] for state in ATTEMPT_OVER)
    assert all(RUN_MOVES[state] == {RunState.QUEUED} for state in RUN_OVER)


def test_an_illegal_move_is_refused_by_name() -> None:
    with pytest.raises(IllegalMove, match="from cancelled to running"):
        check_run_move(RunState.CANCELLED, RunState.RUNNING)
    with pytest.raises(IllegalMove, match="from blocked to active"):
        check_step_move(StepState.BLOCKED, StepState.ACTIVE)
