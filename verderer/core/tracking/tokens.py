"""The words of a search: cuts a filter or an ordering into tokens, whatever was typed."""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import StrEnum

from verderer.core.errors import Invalid
from verderer.core.tracking.limits import MAX_FILTER


class Mark(StrEnum):
    """What a token is."""

    WORD = "word"  # a bare name, dots included, or a keyword
    NAME = "name"  # in backticks
    TEXT = "text"  # in single quotes
    EITHER = "either"  # in double quotes: a name on the left of a comparison, else a text
    NUMBER = "number"
    SIGN = "sign"  # a comparison
    BREAK = "break"  # a bracket or comma


@dataclass(frozen=True, slots=True)
class Token:
    """One word, unquoted."""

    mark: Mark
    text: str
    start: int
    """Where it begins, in characters from 0."""
    end: int
    """Where the next one may begin; tokens without space between them touch."""

    def is_word(self, *words: str) -> bool:
        """Whether it is one of the keywords, in any case."""
        return self.mark is Mark.WORD and self.text.upper() in words


_NUMBER = r"[+-]?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?(?![\w.@/:-])"
_TOKEN = re.compile(
    rf"""(?P<space>\s+)
       | (?P<number>{_NUMBER})
       | (?P<word>[\w.@][\w.@/:-]*)
       | `(?P<name>[^`]*)`
       | '(?P<text>(?:''|[^'])*)'
       | "(?P<either>(?:""|[^"])*)"
       | (?P<sign>!=|<=|>=|=|<|>)
       | (?P<break>[(),])
    """,
    re.VERBOSE | re.ASCII,
)
# Names of other scripts are words too; `\d` and the rest above stay ASCII.
_LETTERS = re.compile(r"[\w.@][\w.@/:-]*")


def tokens(source: str) -> list[Token]:
    """Cut `source` into tokens.

    Raises:
        Invalid: it is too long, a quote is not closed, or it holds a character that means nothing.
    """
    if len(source) > MAX_FILTER:
        raise Invalid(f"a filter holds at most {MAX_FILTER} characters, this one {len(source)}")
    if "\0" in source:
        raise Invalid("a filter must not contain the character NUL")
    found: list[Token] = []
    at = 0
    while at < len(source):
        token, at = _next(source, at)
        if token is not None:
            found.append(token)
    return found


def _next(source: str, at: int) -> tuple[Token | None, int]:
    match = _TOKEN.match(source, at)
    if match is None:
        letters = _LETTERS.match(source, at)
        if letters is None:
            raise Invalid(f"cannot read the filter at character {at + 1}: {source[at : at + 20]!a}")
        return Token(Mark.WORD, letters[0], at, letters.end()), letters.end()
    kind = match.lastgroup or ""
    if kind == "space":
        return None, match.end()
    text = match[kind]
    if kind == "word":
        # An ASCII beginning may go on in another script.
        longer = _LETTERS.match(source, at)
        end = longer.end() if longer else match.end()
        return Token(Mark.WORD, source[at:end], at, end), end
    if kind == "text":
        text = text.replace("''", "'")
    if kind == "either":
        text = text.replace('""', '"')
    return Token(Mark(kind), text, at, match.end()), match.end()
