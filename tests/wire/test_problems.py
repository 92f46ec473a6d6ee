"""Answers that say no, from our server and from whatever stands in between."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from verderer.core.errors import (
    Conflict,
    Fault,
    Invalid,
    NotAllowed,
    NotAuthenticated,
    NotFound,
    Refusal,
    TooLarge,
    TooMany,
    VerdererError,
)
from verderer.wire.problems import MAX_MESSAGE, error_of

PROBLEM = "application/problem+json"


@pytest.mark.parametrize(
    ("status", "kind"),
    [
        (302, Fault),
        (400, Invalid),
        (401, NotAuthenticated),
        (403, NotAllowed),
        (404, NotFound),
        (405, Refusal),
        (408, Fault),
        (409, Conflict),
        (413, TooLarge),
        (422, Invalid),
        (429, TooMany),
        (500, Fault),
        (502, Fault),
        (503, Fault),
    ],
)
def test_each_status_has_its_error(status: int, kind: type[VerdererError]) -> None:
    assert type(error_of(status, b"<html>", content_type="text/html")) is kind


def test_what_the_server_says_is_kept() -> None:
    body = {
        "title": "Invalid",
        "detail": "the pipeline has 1 problem",
        "code": "invalid_pipeline",
        "hint": "mend it",
        "problems": [
            {"message": "unknown step", "field": "steps[1].needs", "line": 7, "column": 3}
        ],
        "unheard_of": [1, 2],
    }
    error = error_of(422, msgspec.json.encode(body), content_type=PROBLEM)
    assert isinstance(error, Invalid)
    assert (error.message, error.code, error.hint) == (
        "the pipeline has 1 problem",
        "invalid_pipeline",
        "mend it",
    )
    assert (error.problems[0].line, error.problems[0].field) == (7, "steps[1].needs")


def test_a_conflict_keeps_its_code() -> None:
    body = msgspec.json.encode({"code": "stale_epoch", "detail": "no"})
    assert error_of(409, body, content_type=PROBLEM).code == "stale_epoch"


@pytest.mark.parametrize(
    ("body", "header", "expected"),
    [(b"{}", "7", 7.0), (b'{"retry_after_s": 2.5}', "7", 2.5), (b"{}", "tomorrow", 1.0)],
)
def test_the_wait_that_was_asked_for(body: bytes, header: str, expected: float) -> None:
    error = error_of(429, body, content_type=PROBLEM, retry_after=header)
    assert isinstance(error, TooMany)
    assert error.retry_after_s == expected


def test_nothing_that_a_terminal_acts_upon_gets_through() -> None:
    body = msgspec.json.encode({"detail": "\x1b]0;owned\x07\u202egnp.exe", "hint": "\x1b[2J"})
    error = error_of(404, body, content_type=PROBLEM)
    assert not {"\x1b", "\x07", "\u202e"} & set(error.message + error.hint)


@given(st.integers(300, 599), st.binary(max_size=200), st.sampled_from([PROBLEM, "text/html", ""]))
def test_any_answer_is_some_error(status: int, body: bytes, content_type: str) -> None:
    error = error_of(status, body, content_type=content_type)
    assert 0 < len(error.message) <= MAX_MESSAGE
