"""Terminal output becomes HTML that can do nothing but look right."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from verderer.web.ansi import to_html, to_text

_ALLOWED = re.compile(
    r'<span class="(?:a[bdiu]|[ab]\d{1,2})(?: (?:a[bdiu]|[ab]\d{1,2}))*">|</span>'
    r'|<i class="ctl">|</i>'
)


@pytest.mark.parametrize(
    ("text", "html"),
    [
        pytest.param("plain", "plain", id="as it stands"),
        pytest.param("<b>&", "&lt;b&gt;&amp;", id="escaped"),
        pytest.param("\x1b[31mred\x1b[0m!", '<span class="a1">red</span>!', id="a colour"),
        pytest.param("\x1b[1;92mok", '<span class="a10 ab">ok</span>', id="bright and bold"),
        pytest.param("\x1b[38;5;196mx", '<span class="a9">x</span>', id="one of 256"),
        pytest.param("\x1b[38;2;0;0;255mx", '<span class="a12">x</span>', id="a true colour"),
        pytest.param("\x1b[2K\x1b[1Ax", "x", id="movements are dropped"),
        pytest.param("\x1b]8;;http://x\x07link\x1b]8;;\x07", "link", id="links are dropped"),
        pytest.param("a\x00b", 'a<i class="ctl">␀</i>b', id="what cannot be seen is shown"),
        pytest.param("\u202egnp", '<i class="ctl">U+202E</i>gnp', id="no text runs backwards"),
    ],
)
def test_to_html(text: str, html: str) -> None:
    assert to_html(text) == html


_PIECES = st.one_of(
    st.text(max_size=20),
    st.sampled_from(["\x1b[", "\x1b]", "\x1b", "31m", "38;5;", "<script>", "\x07", '"', "0m"]),
)


@given(st.lists(_PIECES, max_size=20).map("".join))
def test_nothing_but_our_own_tags_comes_out(text: str) -> None:
    rest = _ALLOWED.sub("", to_html(text))
    assert "<" not in rest
    assert ">" not in rest
    assert "\x1b" not in rest


def test_searches_look_at_what_is_seen() -> None:
    assert to_text("\x1b[31mERR\x1b[0mOR") == "ERROR"
