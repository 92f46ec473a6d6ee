"""Catalogues: nothing that pages show lacks a translation, and placeholders agree."""

from __future__ import annotations

import re

import pytest
from babel.messages.pofile import read_po

from tests.web.catalogue import all_filled, catalogue, extract
from verderer.core.diagnosis import ADVICE
from verderer.core.explain import Why
from verderer.core.model.attempt import AttemptState, EndCause
from verderer.core.model.run import RunState
from verderer.core.model.step import StepState
from verderer.core.model.waiting import PENDING_CHANGES, Pending
from verderer.store.views.steps import Shown
from verderer.web import findings, reasons, states
from verderer.web.language import NAMES, SOURCE, Catalogues

_PLACE = re.compile(r"%\(\w+\)s|\{n\}|`[^`]+`")
OTHERS = [code for code in NAMES if code != SOURCE]


@pytest.mark.parametrize("code", OTHERS)
def test_every_text_is_translated(code: str) -> None:
    with catalogue(code).open("rb") as file:
        known = read_po(file, locale=code)
    missing = [
        m.id
        for m in extract()
        if m.id and not ((found := known.get(m.id)) and all_filled(found.string))
    ]
    assert not missing, "run `python -m tests.web.catalogue` and translate what it names"


@pytest.mark.parametrize("code", OTHERS)
def test_placeholders_agree(code: str) -> None:
    with catalogue(code).open("rb") as file:
        for message in read_po(file, locale=code):
            texts = message.id if isinstance(message.id, tuple) else (message.id,)
            given = message.string if isinstance(message.string, tuple) else (message.string,)
            wanted = set(_PLACE.findall(texts[-1]))
            for text in given if message.id else ():
                assert set(_PLACE.findall(text)) == wanted, message.id


@pytest.mark.parametrize("kind", [RunState, StepState, AttemptState, Shown])
def test_every_state_has_a_look(kind: type[RunState]) -> None:
    assert not [state for state in kind if state.value not in states.LOOKS]


def test_looks_differ_by_more_than_colour() -> None:
    words_of = {}
    for look in states.LOOKS.values():
        words_of.setdefault((look.shape, look.tone), set()).add(look.word)
    told_apart = {("disc", "run"), ("check", "good"), ("cross", "bad"), ("ring", "wait")}
    assert told_apart <= set(words_of)


def test_findings_are_told_in_the_words_of_the_core() -> None:
    assert {f: (a.sentence, a.remedy) for f, a in ADVICE.items()} == findings.WORDS


def test_every_reason_and_every_end_has_words() -> None:
    assert set(Why) == set(reasons._SENTENCES) == set(reasons._KINDS)
    assert set(EndCause) == set(reasons._ENDS)
    assert set(Pending) == set(reasons._PENDING) == set(reasons._PENDING_KINDS)
    assert set(reasons._PENDING_CHANGES) == set(PENDING_CHANGES)


@pytest.mark.parametrize(
    ("wishes", "accept", "code"),
    [
        pytest.param((), "", "en", id="nobody says anything"),
        pytest.param((), "zh-CN,zh;q=0.9,en;q=0.8", "zh_Hans", id="a Chinese browser"),
        pytest.param((), "zh-TW,en;q=0.5", "en", id="traditional characters are another language"),
        pytest.param((), "fr, zh;q=0.1", "zh_Hans", id="the best that there is"),
        pytest.param(("en",), "zh-CN", "en", id="a choice outweighs the browser"),
        pytest.param(("zh-Hans",), "en", "zh_Hans", id="as accounts keep it"),
        pytest.param(("xx", ""), "en;q=x", "en", id="nonsense"),
    ],
)
def test_choose(wishes: tuple[str, ...], accept: str, code: str) -> None:
    assert Catalogues.load().choose(*wishes, accept=accept).code == code
