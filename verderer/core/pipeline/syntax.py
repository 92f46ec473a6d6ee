"""The grammar of `when`: a tokenizer and a parser by recursive descent, with bounded depth.

condition  = all ("or" all)*
all        = negation ("and" negation)*
negation   = "not" negation | comparison
comparison = operand (("==" | "!=" | "<" | "<=" | ">" | ">=") operand)?
operand    = "(" condition ")" | NAME "(" ")" | reference | TEXT | NUMBER | "true" | "false"
reference  = "params." NAME | "matrix." NAME | "steps." NAME ".state"
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Final, NamedTuple

from verderer.core.pipeline.reading.problems import did_you_mean, listed, nearest, shown

MAX_LENGTH: Final = 2_000
MAX_LEVELS: Final = 32
FUNCTIONS: Final = ("succeeded", "failed", "always")
COMPARISONS: Final = ("==", "!=", "<", "<=", ">", ">=")

_TOKEN: Final = re.compile(
    r"\s*(?:(?P<number>[-+]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][-+]?[0-9]+)?)(?![\w.])"
    r"|(?P<text>'[^']*'|\"[^\"]*\")"
    r"|(?P<name>[A-Za-z_][A-Za-z0-9_-]*(?:\.[A-Za-z0-9_-]+)*)"
    r"|(?P<sign>==|!=|<=|>=|<|>|\(|\)))"
)
_WORDS: Final = {"&&": "and", "||": "or", "!": "not", "=": "==", "<>": "!=", "=>": ">=", "=<": "<="}
_REFERENCE: Final = re.compile(
    r"(?:params|matrix)\.[A-Za-z_][A-Za-z0-9_-]*|steps\.[a-z0-9][a-z0-9-]*\.state"
)


class ConditionError(Exception):
    """A condition is not in the grammar; `part` is the text at fault, where there is one."""

    def __init__(self, message: str, *, part: str = "", hint: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.part = part
        self.hint = hint


@dataclass(frozen=True, slots=True)
class Literal:
    """A value as written. `quoted` ones are always compared as texts."""

    text: str
    quoted: bool = False


@dataclass(frozen=True, slots=True)
class Name:
    """A reference such as `params.lr` or `steps.train.state`."""

    name: str


@dataclass(frozen=True, slots=True)
class Call:
    """One of `FUNCTIONS`."""

    function: str


@dataclass(frozen=True, slots=True)
class Not:
    """The opposite."""

    inner: Condition


@dataclass(frozen=True, slots=True)
class Every:
    """All of them hold."""

    parts: tuple[Condition, ...]


@dataclass(frozen=True, slots=True)
class Some:
    """At least one of them holds."""

    parts: tuple[Condition, ...]


@dataclass(frozen=True, slots=True)
class Compare:
    """Two values and one of `COMPARISONS`."""

    left: Condition
    sign: str
    right: Condition


Condition = Literal | Name | Call | Not | Every | Some | Compare


class _Token(NamedTuple):
    kind: str
    text: str


_END: Final = _Token("end", "")


@lru_cache(maxsize=1_024)
def parse_condition(text: str) -> Condition:
    """Read a condition.

    Raises:
        ConditionError: not in the grammar, or longer or deeper than the limits.
    """
    if len(text) > MAX_LENGTH:
        raise ConditionError(f"a condition has at most {MAX_LENGTH:,} characters")
    parser = _Parser(_tokens(text))
    condition = parser.condition()
    if parser.token is not _END:
        raise _unexpected(parser.token)
    return condition


def walk(condition: Condition) -> Iterator[Condition]:
    """The condition and everything inside it."""
    yield condition
    match condition:
        case Not(inner):
            yield from walk(inner)
        case Every(parts) | Some(parts):
            for part in parts:
                yield from walk(part)
        case Compare(left, _, right):
            yield from walk(left)
            yield from walk(right)
        case _:
            pass


def _tokens(text: str) -> list[_Token]:
    tokens: list[_Token] = []
    at, end = 0, len(text.rstrip())
    while at < end:
        found = _TOKEN.match(text, at)
        if found is None or found.lastgroup is None:
            raise _unreadable(text[at:].lstrip())
        tokens.append(_Token(found.lastgroup, found[found.lastgroup]))
        at = found.end()
    return tokens


def _unreadable(rest: str) -> ConditionError:
    if rest[0] in "'\"":
        return ConditionError("a text in the condition is not closed", part=rest[0])
    sign = next((s for s in sorted(_WORDS, key=len, reverse=True) if rest.startswith(s)), "")
    if sign:
        hint = did_you_mean(_WORDS[sign])
        return ConditionError(f"a condition has no `{sign}`", part=sign, hint=hint)
    hint = ""
    if rest.startswith("${{"):
        hint = "a condition needs no `${{ }}`: write params.x by itself"
    return ConditionError(f"{shown(rest[:10])} is not part of a condition", part=rest[0], hint=hint)


def _unexpected(token: _Token) -> ConditionError:
    if token is _END:
        return ConditionError("the condition ends where a value is expected")
    hint = ""
    if token.text in COMPARISONS:
        hint = "compare two values at a time, and join comparisons with `and`"
    return ConditionError(f"{shown(token.text)} is not expected here", part=token.text, hint=hint)


class _Parser:
    """Walks the tokens once; `token` is the next one."""

    def __init__(self, tokens: list[_Token]) -> None:
        self._rest = iter(tokens)
        self._level = 0
        self.token = next(self._rest, _END)

    def condition(self) -> Condition:
        parts = [self._all()]
        while self._take_word("or"):
            parts.append(self._all())
        return parts[0] if len(parts) == 1 else Some(tuple(parts))

    def _all(self) -> Condition:
        parts = [self._negation()]
        while self._take_word("and"):
            parts.append(self._negation())
        return parts[0] if len(parts) == 1 else Every(tuple(parts))

    def _negation(self) -> Condition:
        negated = False
        while self._take_word("not"):
            negated = not negated
        inner = self._comparison()
        return Not(inner) if negated else inner

    def _comparison(self) -> Condition:
        left = self._operand()
        if self.token.kind != "sign" or self.token.text not in COMPARISONS:
            return left
        sign = self._advance().text
        return Compare(left, sign, self._operand())

    def _operand(self) -> Condition:
        token = self._advance()
        if token.kind == "number":
            return Literal(token.text)
        if token.kind == "text":
            return Literal(token.text[1:-1], quoted=True)
        if token.kind == "name":
            return self._named(token)
        if token.text == "(":
            return self._parenthesis()
        raise _unexpected(token)

    def _parenthesis(self) -> Condition:
        self._level += 1
        if self._level > MAX_LEVELS:
            raise ConditionError(f"a condition has at most {MAX_LEVELS} levels of parentheses")
        inner = self.condition()
        if self.token.text != ")" or self.token.kind != "sign":
            raise ConditionError("a parenthesis is not closed", part="(")
        self._advance()
        self._level -= 1
        return inner

    def _named(self, token: _Token) -> Condition:
        if self.token == ("sign", "("):
            return self._call(token)
        if token.text in ("true", "false"):
            return Literal(token.text)
        if _REFERENCE.fullmatch(token.text):
            return Name(token.text)
        raise _unknown_name(token.text)

    def _call(self, token: _Token) -> Condition:
        self._advance()
        if self.token != ("sign", ")"):
            raise ConditionError(f"`{token.text}()` takes nothing between its parentheses")
        self._advance()
        if token.text in FUNCTIONS:
            return Call(token.text)
        hint = did_you_mean(nearest(token.text, FUNCTIONS))
        known = listed([f"{name}()" for name in FUNCTIONS])
        raise ConditionError(
            f"there is no function {shown(token.text)}",
            part=token.text,
            hint=hint or f"there are {known}",
        )

    def _take_word(self, word: str) -> bool:
        if self.token != ("name", word):
            return False
        self._advance()
        return True

    def _advance(self) -> _Token:
        token = self.token
        self.token = next(self._rest, _END)
        return token


def _unknown_name(name: str) -> ConditionError:
    if name in FUNCTIONS:
        return ConditionError(f"`{name}` is a function", part=name, hint=f"write {name}()")
    if name in ("and", "or", "not"):
        return ConditionError(f"`{name}` needs a condition beside it", part=name)
    hint = "put quotes around a text; a value is params.NAME, matrix.NAME or steps.NAME.state"
    if name.startswith("steps."):
        hint = f"write {'.'.join(name.split('.')[:2])}.state"
    elif name in ("True", "False", "TRUE", "FALSE"):
        hint = did_you_mean(name.lower())
    return ConditionError(f"{shown(name)} is not a value", part=name, hint=hint)
