"""Tokens: what is accepted as one, what is kept, and that steps' tokens cannot be made up."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from verderer.core.credentials import (
    StepClaim,
    TokenKind,
    hash_token,
    hint_of,
    kind_of,
    make_one_time_password,
    make_step_token,
    make_token,
    read_step_token,
)
from verderer.core.model.attempt import AttemptKey

KEY, OTHER_KEY = b"a" * 32, b"b" * 32
PLAIN = [TokenKind.SESSION, TokenKind.USER, TokenKind.AGENT]
secrets = st.binary(min_size=32, max_size=32)
claims = st.builds(
    StepClaim,
    st.builds(
        AttemptKey,
        st.integers(0, (1 << 63) - 1),
        st.integers(0, (1 << 31) - 1),
        st.integers(1, (1 << 15) - 1),
    ),
    st.integers(1, (1 << 31) - 1),
    st.integers(1, 1 << 40),
)


@given(st.sampled_from(PLAIN), secrets)
def test_a_token_says_its_kind_and_keeps_all_256_bits(kind: TokenKind, secret: bytes) -> None:
    token = make_token(kind, secret)
    assert kind_of(token) is kind
    assert len(token) == len(kind) + 43
    assert make_token(kind, bytes(32)) == token or secret != bytes(32)
    assert token.startswith(hint_of(token))
    assert len(hash_token(token)) == 32


@pytest.mark.parametrize(
    ("kind", "secret"),
    [
        pytest.param(TokenKind.USER, b"short", id="fewer than 256 bits"),
        pytest.param(TokenKind.USER, b"x" * 33, id="more than 256 bits"),
        pytest.param(TokenKind.STEP, b"x" * 32, id="a step's token is signed, not drawn"),
    ],
)
def test_a_token_is_not_made_of(kind: TokenKind, secret: bytes) -> None:
    with pytest.raises(ValueError, match="32 random bytes"):
        make_token(kind, secret)


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("", id="nothing"),
        pytest.param("nothing", id="a word"),
        pytest.param("vrd_u_", id="a prefix alone"),
        pytest.param("vrd_u_" + "a" * 42, id="one character short"),
        pytest.param("vrd_u_" + "a" * 44, id="one character long"),
        pytest.param("vrd_u_" + "a" * 42 + "\n", id="a line break at the end"),
        pytest.param("vrd_u_" + "a" * 42 + "é", id="a letter beyond ASCII"),
        pytest.param("VRD_U_" + "a" * 43, id="capitals"),
        pytest.param(" vrd_u_" + "a" * 43, id="a blank before"),
        pytest.param("vrd_x_" + "a" * 43, id="an unknown kind"),
        pytest.param("vrd_t_" + "a" * 1_000_000, id="a megabyte"),
    ],
)
def test_this_is_no_token(text: str) -> None:
    assert kind_of(text) is None


@given(st.text())
def test_reading_never_breaks(text: str) -> None:
    kind_of(text)
    assert read_step_token(KEY, text, now_unix_s=0) is None
    assert read_step_token(KEY, "vrd_t_" + text, now_unix_s=0) is None


@given(claims)
def test_a_step_token_says_what_was_signed(claim: StepClaim) -> None:
    token = make_step_token(KEY, claim)
    assert kind_of(token) is TokenKind.STEP
    assert read_step_token(KEY, token, now_unix_s=claim.expires_unix_s - 1) == claim


@given(claims)
def test_a_step_token_is_nothing_after_its_time_or_on_another_instance(claim: StepClaim) -> None:
    token = make_step_token(KEY, claim)
    assert read_step_token(KEY, token, now_unix_s=claim.expires_unix_s) is None
    assert read_step_token(OTHER_KEY, token, now_unix_s=0) is None


@given(claims, st.data())
def test_changing_any_character_makes_a_step_token_worthless(
    claim: StepClaim, data: st.DataObject
) -> None:
    token = make_step_token(KEY, claim)
    at = data.draw(st.integers(len(TokenKind.STEP), len(token) - 1))
    letter = data.draw(st.sampled_from("abcXYZ019-_"))
    forged = token[:at] + letter + token[at + 1 :]
    if forged != token:
        assert read_step_token(KEY, forged, now_unix_s=0) is None


@given(secrets)
def test_a_one_time_password_is_easy_to_copy(secret: bytes) -> None:
    password = make_one_time_password(secret)
    assert len(password) == 23
    assert not set(password) & set("ilou IL")
