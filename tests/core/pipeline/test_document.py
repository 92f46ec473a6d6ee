"""Bytes that are no pipeline at all: each is refused at once, with its place."""

from __future__ import annotations

from time import process_time

import pytest
import yaml

from tests.core.pipeline.make import problem, text_of
from verderer.core.errors import Invalid
from verderer.core.pipeline.parse import parse
from verderer.core.pipeline.reading import document

MIB = 2**20
BOMB = b"a: &a [x,x,x,x,x,x,x,x,x]\n" + b"".join(
    b"%c: &%c [%s]\n" % (98 + n, 98 + n, b",".join([b"*%c" % (97 + n)] * 9)) for n in range(9)
)


@pytest.mark.parametrize(
    ("data", "place", "words"),
    [
        pytest.param(b"", (0, 0), "empty", id="nothing"),
        pytest.param(b"# a comment\n", (0, 0), "empty", id="a comment"),
        pytest.param(b"a: 1\nb: \xff", (2, 4), "byte 8 (0xff) is not UTF-8", id="a wrong byte"),
        pytest.param("é: ".encode() + b"\xe9", (1, 4), "byte 4 (0xe9)", id="Latin-1 after UTF-8"),
        pytest.param("a: 1".encode("utf-16"), (1, 1), "not UTF-8", id="UTF-16"),
        pytest.param(b"a: 1\nb: \x07", (2, 4), "U+0007", id="a control character"),
        pytest.param(b"a: b: c", (1, 5), "mapping values are not allowed", id="two colons"),
        pytest.param(b"a:\n\t- b", (2, 1), "cannot start any token", id="a tab"),
        pytest.param(b"a: [1, 2", (2, 1), "did not find expected", id="an open bracket"),
        pytest.param(b"a: *b", (1, 4), "`*b` names an anchor that is not", id="no such anchor"),
        pytest.param(b"a: &a [*a]", (1, 8), "stands inside what it names", id="inside itself"),
        pytest.param(b"a: &a {b: {c: *a}}", (1, 15), "inside what it names", id="deep in itself"),
        pytest.param(b"a: 1\n---\nb: 2", (2, 1), "a second document", id="two documents"),
        pytest.param(b"{[a]: 1}", (1, 2), "a key must be a text", id="a list as a key"),
        pytest.param(b"a: {{x}}", (1, 5), "a key must be a text", id="braces of a template"),
        pytest.param(b"- " * 40 + b"x", (1, 65), "more than 32 levels", id="deep lists"),
        pytest.param(BOMB, (6, 11), "more than 200,000 values", id="a billion laughs"),
        pytest.param(
            b"a: &a '" + b"x" * 10_000 + b"'\nb: [" + b"*a," * 500 + b"*a]",
            (2, 1259),
            "more than 4,194,304 characters",
            id="a long text repeated",
        ),
        pytest.param(b'a: "\\ud800"', (1, 7), "escape code", id="half a character"),
        pytest.param(b"x" * (MIB + 1), (0, 0), "1 MiB is the limit", id="one byte too many"),
    ],
)
def test_what_cannot_be_read_is_one_problem(
    data: bytes, place: tuple[int, int], words: str
) -> None:
    found = problem(data)
    assert words in found.message
    assert (found.line, found.column) == place


@pytest.mark.parametrize(
    "data",
    [
        pytest.param(b"a" * (10 * MIB), id="ten megabytes"),
        pytest.param(b"[" * MIB, id="brackets"),
        pytest.param(b"{" * MIB, id="braces"),
        pytest.param(b"- " * (MIB // 2), id="dashes"),
        pytest.param(b"? " * (MIB // 2), id="question marks"),
        pytest.param(b'"' * MIB, id="quotes"),
        pytest.param(BOMB * 1000, id="bombs"),
        pytest.param(b"- &a0 [x]\n" + b"".join(b"- &a%d [*a%d]\n" % (n + 1, n)
                                               for n in range(9_000)), id="a chain of aliases"),
    ],
)  # fmt: skip
def test_hostile_documents_are_refused_quickly(data: bytes) -> None:
    started = process_time()
    with pytest.raises(Invalid):
        parse(data)
    assert process_time() - started < 1.0


def test_a_second_key_points_at_the_second() -> None:
    found = problem("metadata: {name: p}\nsteps:\n- name: s\n  command: [e]\n  name: t\n")
    assert (found.line, found.column, found.field) == (5, 3, "steps[0].name")
    assert "line 3" in found.message


def test_the_parser_written_in_python_refuses_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(document, "_LOADER", yaml.SafeLoader)
    assert parse(text_of("{name: s, command: [e], nodes: 3}").encode()).steps[0].nodes == 3
    for data in (BOMB, b"- " * 40, b"a: 1\n---\nb: 2", b'a: "\\U00110000"', b"a: [", b"a: &a [*a]"):
        problem(data)


def test_half_a_character_from_the_python_parser_is_refused(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(document, "_LOADER", yaml.SafeLoader)
    problem(text_of('{name: s, command: ["\\ud800"]}'))
