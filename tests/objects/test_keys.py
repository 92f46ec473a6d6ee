"""What a key may be, and where each kind of object lives."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from verderer.core.errors import Invalid
from verderer.objects import keys

SHA = "0123456789abcdef" * 4


@pytest.mark.parametrize(
    ("key", "why"),
    [
        pytest.param("", "empty", id="nothing"),
        pytest.param("/a", "empty part", id="a leading slash"),
        pytest.param("a/", "empty part", id="a trailing slash"),
        pytest.param("a//b", "empty part", id="two slashes"),
        pytest.param("..", "'..'", id="the parent"),
        pytest.param("a/../b", "'..'", id="the parent in the middle"),
        pytest.param("./a", "'.'", id="the same folder"),
        pytest.param("a\0b", "control", id="a NUL"),
        pytest.param("a\nb", "control", id="a line feed"),
        pytest.param("a\x1b[31m", "control", id="a terminal escape"),
        pytest.param("a\x85b", "control", id="a C1 control"),
        pytest.param("a\\b", "backslash", id="a backslash"),
        pytest.param("\ud800", "Unicode", id="half a surrogate pair"),
        pytest.param("x" * 241, "longer than 240", id="a part of 241 bytes"),
        pytest.param("ü" * 121, "longer than 240", id="a part of 242 bytes in 121 characters"),
        pytest.param("/".join(["x" * 99] * 10), "limit is 900", id="999 bytes"),
        pytest.param("a/b#12", "unfinished", id="the name of an unfinished write"),
    ],
)
def test_is_refused(key: str, why: str) -> None:
    with pytest.raises(Invalid, match=why) as refused:
        keys.check_key(key)
    assert refused.value.code == "invalid_key"
    assert str(refused.value).isascii()
    assert str(refused.value).isprintable()


@pytest.mark.parametrize("key", ["a", "a/b", "...", "a..b/.c", "日本/語", "a#b", "#", "a#1b", " "])
def test_is_taken_as_it_is(key: str) -> None:
    assert keys.check_key(key) == key


def test_prefixes_are_whole_folders() -> None:
    assert keys.check_prefix("") == ""
    assert keys.check_prefix("a/b/") == "a/b/"
    for bad in ("a", "/", "a//", "../"):
        with pytest.raises(Invalid):
            keys.check_prefix(bad)


def test_each_kind_has_its_folder() -> None:
    assert keys.log_key("p", "r", "s", 2, "0", 7) == "logs/p/r/s/2/0/00000007.vlog"
    assert keys.artifact_key("p", "r", "s", 1, "m", "x/y.bin") == "artifacts/p/r/s/1/m/tree/x/y.bin"
    assert keys.artifact_key("p", "r", "s", 1, "m") == "artifacts/p/r/s/1/m/file/data"
    assert keys.artifact_prefix("p", "r", "s", 1, "m") == "artifacts/p/r/s/1/m/"
    assert keys.tmp_key("t") == "tmp/t/data"
    assert keys.content_key(SHA) == f"content/01/{SHA}"


@pytest.mark.parametrize("path", ["../x", "/etc/passwd", "a//b", "a/./b", "a/", "x" * 300])
def test_a_path_that_leads_elsewhere_is_refused(path: str) -> None:
    with pytest.raises(Invalid):
        keys.artifact_key("p", "r", "s", 1, "model", path)


@pytest.mark.parametrize("name", ["..", "", "."])
def test_a_name_that_leads_elsewhere_is_refused(name: str) -> None:
    with pytest.raises(Invalid):
        keys.artifact_key("p", "r", "s", 1, name, "x")


@pytest.mark.parametrize("sha", ["", SHA[:-1], SHA.upper(), SHA + "\n", "../" + SHA[3:]])
def test_only_a_hash_names_content(sha: str) -> None:
    with pytest.raises(Invalid):
        keys.content_key(sha)


def test_a_slash_in_a_name_makes_no_folder() -> None:
    assert keys.artifact_key("p", "r", "s", 1, "a/b", "x") == "artifacts/p/r/s/1/a%2Fb/tree/x"


@given(first=st.text(max_size=30), second=st.text(max_size=30))
def test_different_paths_never_share_a_key(first: str, second: str) -> None:
    made = []
    for path in (first, second):
        try:
            made.append(keys.artifact_key("p", "r", "s", 1, "n", path))
        except Invalid:
            return
    assert (made[0] == made[1]) == (first == second)


@given(st.text())
def test_every_text_is_taken_or_refused(text: str) -> None:
    try:
        key = keys.check_key(text)
    except Invalid:
        return
    assert len(key.encode()) <= keys.MAX_KEY_BYTES
    assert ".." not in key.split("/")
