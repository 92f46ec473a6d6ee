"""Names, identifiers, limits and page tokens."""

from __future__ import annotations

import base64

import pytest
from hypothesis import given
from hypothesis import strategies as st

from verderer.core.errors import Invalid, NotFound
from verderer.core.tracking import entities, names
from verderer.core.tracking.paging import page_token, parse_page_token


@pytest.mark.parametrize(
    "key", ["a", "loss/val", "a b", "a:b", "a.b-c_d", "größe", "x" * 250, "a/..b"]
)
def test_these_may_be_keys(key: str) -> None:
    assert names.check_key(key, "key") == key


@pytest.mark.parametrize(
    "key",
    [None, "", "a\n", "a\0", "a#b", "a=b", "../a", "a/../b", "/a", "a/", "a//b", ".", "..",
     "./a", "a/.", "a\\b", "x" * 251],
)  # fmt: skip
def test_these_may_not(key: str | None) -> None:
    with pytest.raises(Invalid):
        names.check_key(key, "key")


def test_long_values_are_cut_as_clients_expect() -> None:
    assert len(names.param_value("x" * 9_000, "value")) == 6_000
    assert len(names.tag_value("x" * 9_000, "value")) == 8_000
    with pytest.raises(Invalid, match="20000"):
        names.experiment_tag_value("x" * 20_001)


@pytest.mark.parametrize("text", ["a\0b", "\ud800"])
def test_what_no_database_keeps_is_refused(text: str) -> None:
    with pytest.raises(Invalid):
        names.tag_value(text, "value")


@pytest.mark.parametrize("key", sorted(names.RESERVED_TAGS))
def test_the_tags_of_the_platform_are_refused(key: str) -> None:
    with pytest.raises(Invalid, match="cannot be changed"):
        names.check_tag_key(key, "key")


@pytest.mark.parametrize("name", ["train", "team/train", "a b", "größe", "x" * 500, "'; DROP"])
def test_these_may_be_experiments(name: str) -> None:
    assert names.check_experiment_name(name) == name


@pytest.mark.parametrize("name", [None, "", "  ", "a\nb", "a\0", "x" * 501])
def test_these_experiments_may_not(name: str | None) -> None:
    with pytest.raises(Invalid):
        names.check_experiment_name(name)


@pytest.mark.parametrize("text", ["-1", "1.5", "abc", "", None, "9" * 19, "１", "1 "])
def test_what_is_no_experiment_id_is_refused(text: str | None) -> None:
    with pytest.raises(Invalid):
        names.parse_experiment_id(text)


@pytest.mark.parametrize(
    "text", ["x", "../a", "...a", "A" * 32, "a" * 31, "a" * 33, "a" * 32 + "\n"]
)
def test_what_cannot_be_a_run_does_not_exist(text: str) -> None:
    with pytest.raises(NotFound, match="not found"):
        names.parse_run_uid(text)


@given(st.integers(0, (1 << 64) - 1))
def test_made_up_names_and_ids_are_acceptable(chance: int) -> None:
    name = names.made_up_name(chance)
    assert names.check_model_name(name) == names.check_experiment_name(name) == name
    made = names.make_experiment_id(chance)
    assert names.parse_experiment_id(str(made)) == made
    assert len(str(made)) == 15


@given(st.integers(0, (1 << 61) - 1))
def test_a_page_token_is_read_back(offset: int) -> None:
    assert parse_page_token(page_token(offset)) == offset


@pytest.mark.parametrize(
    "token",
    ["x", "bm9wZQ==", "é", base64.b64encode(b"[]").decode(), base64.b64encode(b"{}").decode(),
     base64.b64encode(b'{"offset": -1}').decode(), base64.b64encode(b'{"offset": true}').decode(),
     base64.b64encode(b'{"offset": 1e3}').decode(), base64.b64encode(b"[" * 5000).decode(),
     page_token(1 << 70)],
)  # fmt: skip
def test_what_is_no_page_token_is_refused(token: str) -> None:
    with pytest.raises(Invalid):
        parse_page_token(token)


@given(st.text())
def test_any_text_is_a_page_token_or_refused(token: str) -> None:
    try:
        assert parse_page_token(token) >= 0
    except Invalid:
        pass


def test_a_status_may_be_a_name_or_a_number() -> None:
    assert entities.parse_status("FINISHED") is entities.parse_status(3)
    assert entities.parse_status("3") is entities.Status.FINISHED
    assert entities.parse_stage(None) is entities.Stage.ACTIVE
    assert entities.parse_stage("ALL") is entities.parse_stage(3) is entities.Stage.ALL


@pytest.mark.parametrize("value", ["", "DONE", "finished", 0, 9, "33", "²"])
def test_another_status_is_refused(value: str | int) -> None:
    with pytest.raises(Invalid):
        entities.parse_status(value)
    with pytest.raises(Invalid):
        entities.parse_stage(value)
