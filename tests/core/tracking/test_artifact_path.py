"""Paths of artifacts: nothing leaves its root, however it is written."""

from __future__ import annotations

import posixpath
from urllib.parse import quote, unquote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from verderer.core.errors import Invalid, NotFound
from verderer.core.tracking.artifact_path import (
    Address,
    check_path,
    decode_once,
    model_root,
    parse_address,
    run_root,
)

UID = "0123456789abcdef" * 2

ATTACKS = [
    pytest.param("..", id="a parent"),
    pytest.param("../x", id="a parent's child"),
    pytest.param("a/../../x", id="a parent in the middle"),
    pytest.param("a/..", id="a parent at the end"),
    pytest.param(".", id="itself"),
    pytest.param("a/./b", id="itself in the middle"),
    pytest.param("/etc/passwd", id="an absolute path"),
    pytest.param("//etc/passwd", id="two slashes"),
    pytest.param("a//b", id="an empty part"),
    pytest.param("..\\x", id="a backslash"),
    pytest.param("a\\..\\..\\x", id="backslashes all over"),
    pytest.param("C:\\x", id="a drive"),
    pytest.param("C:/x", id="a drive with a slash"),
    pytest.param("a\0.txt", id="a NUL"),
    pytest.param("a\n", id="a new line"),
    pytest.param("a\x85", id="a control character of Latin 1"),
    pytest.param("file:///etc/passwd", id="a file URL"),
    pytest.param("file:/etc/passwd", id="a short file URL"),
    pytest.param("s3://bucket/x", id="a bucket"),
    pytest.param("http:/x", id="a web address"),
    pytest.param("a?b=c", id="a query"),
    pytest.param("a#/../../x", id="a fragment"),
    pytest.param("%2e%2e/x", id="encoded dots"),
    pytest.param("%2e%2e%2fx", id="all of it encoded"),
    pytest.param("%252e%252e%252fx", id="encoded twice"),
    pytest.param("%25252e%25252e%25252fx", id="encoded three times"),
    pytest.param("a%2f..%2f..%2fx", id="encoded slashes"),
    pytest.param("..%5cx", id="an encoded backslash"),
    pytest.param("a%00", id="an encoded NUL"),
    pytest.param("a%23", id="an encoded fragment"),
    pytest.param("file%3a/x", id="an encoded scheme"),
    pytest.param("%25252525252525252e", id="encoded over and over"),
    pytest.param("%ff", id="an encoded byte that is no text"),
    pytest.param("a" * 201, id="a part too long"),
    pytest.param("/".join(["a" * 100] * 7), id="all of it too long"),
]


@pytest.mark.parametrize("path", ATTACKS)
def test_an_attack_is_refused(path: str) -> None:
    with pytest.raises(Invalid):
        check_path(path)
    with pytest.raises(Invalid):
        parse_address(f"1/{UID}/artifacts/{path}")


@pytest.mark.parametrize(
    "path",
    ["", "a", "a/b.txt", "a b", "größe.png", "100%.txt", "a%b", "2024-01-01T10:00:00.json", "...",
     "..a", "a..", "a:b", "a&b=c", "a+b", "日本/語.txt"],
)  # fmt: skip
def test_an_honest_path_is_kept_as_it_is(path: str) -> None:
    assert check_path(path) == path


@given(st.text(max_size=60))
def test_what_is_let_through_stays_below_its_root_however_often_it_is_decoded(path: str) -> None:
    try:
        seen = check_path(path)
    except Invalid:
        return
    for _ in range(6):
        inside = posixpath.normpath(posixpath.join("/root", seen))
        assert inside == "/root" or inside.startswith("/root/")
        assert not set(seen) & set("\\\0#?")
        seen = unquote(seen, errors="surrogateescape")


@given(st.text(max_size=60))
def test_a_path_that_was_encoded_once_is_decoded_to_itself(path: str) -> None:
    try:
        raw = quote(path).encode()
    except UnicodeEncodeError:
        return
    assert decode_once(raw) == path


def test_bytes_that_are_no_text_are_refused() -> None:
    with pytest.raises(Invalid):
        decode_once(b"%ff")


def test_addresses_of_runs_and_models_are_read_back() -> None:
    run = run_root(7, UID).removeprefix("mlflow-artifacts:/")
    model = model_root(7, UID).removeprefix("mlflow-artifacts:/")
    assert parse_address(f"{run}/a/b") == Address(7, UID, False, "a/b")
    assert parse_address(f"/{model}/") == Address(7, UID, True, "")


@pytest.mark.parametrize(
    "path",
    ["", "1", f"1/{UID}", f"1/{UID}/other/x", f"x/{UID}/artifacts/a", "models", "1/models",
     f"1/models/{UID}/artifacts/x", "1/short/artifacts/x", f"1/{UID}artifacts"],
)  # fmt: skip
def test_what_is_no_address_is_refused(path: str) -> None:
    with pytest.raises((Invalid, NotFound)):
        parse_address(path)
