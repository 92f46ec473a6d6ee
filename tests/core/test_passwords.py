"""Which passwords, addresses and names are accepted."""

from __future__ import annotations

import hashlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from verderer.core.credentials import make_one_time_password
from verderer.core.errors import Invalid
from verderer.core.labels import check_name, check_title
from verderer.core.passwords import canonical_email, canonical_password, check_password

ANA = "ana.lopez@example.org"


@pytest.mark.parametrize(
    ("password", "why"),
    [
        pytest.param("Kurz1!", "shorter than 12", id="too short"),
        pytest.param("x7" * 200, "longer than 256", id="too long"),
        pytest.param("aaaaaaaaaaaaaaa", "few different", id="one letter"),
        pytest.param("abababababab1", "few different", id="a short pattern"),
        pytest.param("Password123456!", "tried first", id="the usual word with digits"),
        pytest.param("verderer-admin-2026", "tried first", id="the product and the role"),
        pytest.param("ana.lopez123456", "tried first", id="the own name"),
        pytest.param("abcdefghijklm", "row of the keyboard", id="the alphabet"),
        pytest.param("0987654321098", "few different|row of the keyboard", id="digits backwards"),
        pytest.param("qwertyuiopas", "tried first|row of the keyboard", id="keys in a row"),
        pytest.param("correct horse\x00", "NUL", id="a NUL character"),
    ],
)
def test_refused(password: str, why: str) -> None:
    with pytest.raises(Invalid) as caught:
        check_password(password, email=ANA, field="new")
    (problem,) = caught.value.problems
    assert problem.field == "new"
    assert any(part in problem.message for part in why.split("|")), problem.message
    assert password not in str(caught.value)
    assert password not in problem.message


@pytest.mark.parametrize(
    "password",
    [
        "correct horse battery",
        "Ana likes 3 green hats",
        "гора песок лампа",
        "一二三四五六七八九十百千",
    ],
)
def test_accepted(password: str) -> None:
    check_password(password, email=ANA)


@given(st.integers())
def test_our_own_one_time_passwords_would_be_accepted(seed: int) -> None:
    chance = hashlib.sha256(str(seed).encode()).digest()
    check_password(make_one_time_password(chance), email=ANA)


def test_one_password_has_one_spelling() -> None:
    assert canonical_password("cafe\u0301") == canonical_password("caf\u00e9")


@pytest.mark.parametrize(
    ("typed", "meant"),
    [
        pytest.param(" Ana.Lopez@Example.ORG ", "ana.lopez@example.org", id="blanks and capitals"),
        pytest.param("admin@localhost", "admin@localhost", id="a host without a dot"),
    ],
)
def test_an_address_is_kept_in_one_form(typed: str, meant: str) -> None:
    assert canonical_email(typed) == meant


@pytest.mark.parametrize(
    "typed",
    ["", "ana", "@x.org", "ana@", "a b@x.org", "a@x@y", "ana@x.org\x00", "a\n@x.org", "<a@x>"],
)
def test_not_an_address(typed: str) -> None:
    with pytest.raises(Invalid):
        canonical_email(typed)


@given(st.text())
def test_reading_an_address_never_breaks_and_gives_what_the_schema_takes(text: str) -> None:
    try:
        email = canonical_email(text)
    except Invalid:
        return
    assert email == email.lower()
    assert 3 <= len(email) <= 254
    email.encode()


@pytest.mark.parametrize("name", ["a", "a-b", "0", "a" * 63])
def test_a_name(name: str) -> None:
    assert check_name(name, field="name") == name


@pytest.mark.parametrize(
    "name", ["", "-a", "a-", "A", "a_b", "a/b", "a b", "a%", "a\n", "é", "а", "a" * 64, "../x"]
)
def test_not_a_name(name: str) -> None:
    with pytest.raises(Invalid):
        check_name(name, field="name")


@pytest.mark.parametrize("title", ["a\nb", "\x1b[31m", "a\u202eb", "\ud800", "x" * 201, "a\x00"])
def test_not_a_title(title: str) -> None:
    with pytest.raises(Invalid):
        check_title(title, field="title")
