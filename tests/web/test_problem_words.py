"""Problems of a pipeline are said in the reader's language, whatever values stand in them."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import verderer.core.pipeline
from verderer.core.errors import Invalid
from verderer.core.pipeline.parse import parse
from verderer.web.language import Catalogues, Language
from verderer.web.problem_words import _SENTENCES, _recognise, translated

CORE = Path(verderer.core.pipeline.__file__).parent
CHINESE = Catalogues.load().get("zh_Hans")
ENGLISH = Catalogues.load().get("en")
SAYING = {"add", "refuse", "Wrong", "Problem", "Unfit", "Malformed"}


def sentences() -> Iterator[tuple[str, str]]:
    """Every text that the core gives as a message or a hint, `VALUE` where a value stands."""
    for path in sorted(CORE.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if not isinstance(node, ast.Call):
                continue
            name = getattr(node.func, "id", getattr(node.func, "attr", ""))
            given = [k.value for k in node.keywords if k.arg in ("message", "hint")]
            if name in SAYING and node.args:
                given.append(node.args[0])
            for one in given:
                if text := in_words(one):
                    yield f"{path.name}:{one.lineno}", text


def in_words(node: ast.expr) -> str:
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return node.value
    if isinstance(node, ast.JoinedStr):
        return "".join(
            str(part.value) if isinstance(part, ast.Constant) else "`x`" for part in node.values
        )
    return ""


@pytest.mark.parametrize(("where", "text"), list(sentences()))
def test_every_sentence_of_the_core_is_known(where: str, text: str) -> None:
    if text.strip("`x, ."):
        assert _recognise(text) is not None, f"add it to web/problem_words.py ({where})"


@pytest.mark.parametrize(
    ("document", "said"),
    [
        ("metadata: {name: x}\nsteps: []\n", "应为"),
        ("metadata: {name: x}\nstep: []\n", "没有字段"),
        ("metadata: {name: x}\nsteps:\n- {name: a, command: [x], needs: [b]}\n", "没有步骤 `b`"),
        ("metadata: {name: x}\nsteps:\n- {name: a, command: [x], retries: many}\n", "应为"),
        ("a: [", "检查上方的缩进"),
    ],
)
def test_a_problem_is_chinese_and_its_values_stay(document: str, said: str) -> None:
    with pytest.raises(Invalid) as wrong:
        parse(document.encode())
    shown = " ".join(
        translated(CHINESE, text)
        for problem in wrong.value.problems
        for text in (problem.message, problem.hint)
    )
    assert said in shown
    for problem in wrong.value.problems:
        assert translated(ENGLISH, problem.message) == problem.message


@given(st.sampled_from(_SENTENCES), st.text(max_size=30), st.sampled_from([CHINESE, ENGLISH]))
def test_any_value_may_stand_in_a_sentence(sentence: str, value: str, language: Language) -> None:
    values = dict.fromkeys("abcd", value)
    text = sentence % values if "%(" in sentence else sentence
    assert isinstance(translated(language, text), str)


@given(st.text(max_size=300))
def test_what_is_not_known_stays(text: str) -> None:
    assert translated(ENGLISH, text) == text
