"""The language of searches, as MLflow's clients write it: comparisons joined by AND.

    metrics.acc > 0.9 and params."learning rate" = '0.1' and tags.`a/b` LIKE '%x%'
    attributes.run_id IN ('…', '…') and tags.team IS NOT NULL

What may be compared with what depends on what is searched (`grammar`).
"""

from __future__ import annotations

from verderer.core.errors import Invalid
from verderer.core.tracking.grammar import (
    DATASET_KEYS,
    KINDS,
    LISTS,
    NUMERIC,
    PRESENCE,
    Comparison,
    Field,
    Grammar,
    Kind,
    Op,
)
from verderer.core.tracking.limits import INT64_MAX, MAX_COMPARISONS
from verderer.core.tracking.tokens import Mark, Token, tokens


def parse_filter(source: str | None, grammar: Grammar) -> tuple[Comparison, ...]:
    """Read a filter; empty for none.

    Raises:
        Invalid: it cannot be read, or compares what cannot be compared; the message says where.
    """
    reader = Reader(tokens(source or ""), grammar)
    found: list[Comparison] = []
    while not reader.done:
        if found:
            reader.word("AND")
        found.append(_comparison(reader))
        if len(found) > MAX_COMPARISONS:
            raise Invalid(f"a filter holds at most {MAX_COMPARISONS} comparisons")
    return tuple(found)


class Reader:
    """A place in a list of tokens."""

    def __init__(self, found: list[Token], grammar: Grammar) -> None:
        self._tokens = found
        self._at = 0
        self.grammar = grammar

    @property
    def done(self) -> bool:
        return self._at >= len(self._tokens)

    def peek(self) -> Token | None:
        return None if self.done else self._tokens[self._at]

    def take(self, what: str) -> Token:
        """The next token; `what` says what was expected if there is none."""
        token = self.peek()
        if token is None:
            raise Invalid(f"the filter ends where {what} was expected")
        self._at += 1
        return token

    def word(self, word: str) -> None:
        """Step over a keyword, or refuse what stands there instead."""
        token = self.take(f"the word {word}")
        if not token.is_word(word):
            raise unexpected(token, f"the word {word}")

    def field(self) -> Field:
        """Read a name: pieces that touch each other, the first before a dot saying the kind."""
        pieces = [self._piece(self.take("a name such as metrics.accuracy"))]
        while (token := self.peek()) and token.start == pieces[-1].end and _is_piece(token):
            pieces.append(self.take("a name"))
        return _field(pieces, self.grammar)

    @staticmethod
    def _piece(token: Token) -> Token:
        if not _is_piece(token):
            raise unexpected(token, "a name such as metrics.accuracy")
        return token


def unexpected(token: Token, what: str) -> Invalid:
    """The refusal of a token that stands where something else was expected."""
    return Invalid(f"expected {what} at character {token.start + 1}, found {token.text[:60]!a}")


def _is_piece(token: Token) -> bool:
    return token.mark in (Mark.WORD, Mark.NAME, Mark.EITHER)


def _field(pieces: list[Token], grammar: Grammar) -> Field:
    head = ""
    for i, piece in enumerate(pieces):
        if piece.mark is Mark.WORD and "." in piece.text:
            before, _, after = piece.text.partition(".")
            key = after + "".join(p.text for p in pieces[i + 1 :])
            return _checked(_kind(head + before, grammar), key, grammar)
        head += piece.text
    return _checked(Kind.ATTRIBUTE, head, grammar)


def _kind(text: str, grammar: Grammar) -> Kind:
    kind = KINDS.get(text)
    if kind is None or kind not in grammar.ops:
        known = sorted(k.value for k in grammar.ops)
        raise Invalid(f"Invalid entity type {text[:60]!a}. Valid values are {known}")
    return kind


def _checked(kind: Kind, key: str, grammar: Grammar) -> Field:
    if kind is Kind.ATTRIBUTE:
        if key not in grammar.attributes:
            raise Invalid(
                f"Invalid attribute key {key[:60]!a} specified. "
                f"Valid keys are {sorted(set(grammar.attributes.values()))}"
            )
        return Field(kind, grammar.attributes[key])
    if kind is Kind.DATASET and key not in DATASET_KEYS:
        raise Invalid(
            f"Invalid dataset key {key[:60]!a} specified. Valid keys are {sorted(DATASET_KEYS)}"
        )
    if not key:
        raise Invalid(f"a {kind} needs a name after the dot")
    return Field(kind, key)


def _comparison(reader: Reader) -> Comparison:
    field = reader.field()
    op = _op(reader)
    if op not in _allowed(field, reader.grammar):
        allowed = sorted(o.value for o in _allowed(field, reader.grammar))
        raise Invalid(
            f"Invalid comparator '{op}' for {field.kind} {field.key!a}, not one of {allowed}"
        )
    if op in PRESENCE:
        return Comparison(field, op, None)
    if op in LISTS:
        return Comparison(field, op, _list(reader))
    return Comparison(field, op, _value(reader, field, op))


def _allowed(field: Field, grammar: Grammar) -> frozenset[Op]:
    if field.kind is Kind.ATTRIBUTE and field.key in grammar.numeric:
        return NUMERIC
    if field.kind is Kind.ATTRIBUTE and field.key == "experiment_id":
        return frozenset({Op.EQ, Op.NE}) | LISTS
    return grammar.ops[field.kind]


def _op(reader: Reader) -> Op:
    token = reader.take("a comparison")
    if token.mark is Mark.SIGN:
        return Op(token.text)
    if token.is_word("LIKE", "ILIKE", "IN"):
        return Op(token.text.upper())
    if token.is_word("NOT"):
        reader.word("IN")
        return Op.NOT_IN
    if token.is_word("IS"):
        return _presence(reader)
    raise unexpected(token, "a comparison such as = or LIKE")


def _presence(reader: Reader) -> Op:
    token = reader.take("NULL or NOT NULL")
    if token.is_word("NULL"):
        return Op.NULL
    if token.is_word("NOT"):
        reader.word("NULL")
        return Op.NOT_NULL
    raise unexpected(token, "NULL or NOT NULL")


def _list(reader: Reader) -> tuple[str, ...]:
    opening = reader.take("a list such as ('a', 'b')")
    if opening.text != "(" or opening.mark is not Mark.BREAK:
        raise unexpected(opening, "a list such as ('a', 'b')")
    values: list[str] = []
    while True:
        token = reader.take("a quoted value or )")
        if token.mark is Mark.BREAK and token.text == ")" and values:
            return tuple(values)
        if token.mark not in (Mark.TEXT, Mark.EITHER):
            raise unexpected(token, "a quoted value")
        values.append(token.text)
        after = reader.take(", or )")
        if after.mark is Mark.BREAK and after.text == ")":
            return tuple(values)
        if after.mark is not Mark.BREAK or after.text != ",":
            raise unexpected(after, ", or )")


def _value(reader: Reader, field: Field, op: Op) -> str | int | float:
    token = reader.take("a value")
    if _is_number(field, reader.grammar):
        if token.mark is not Mark.NUMBER:
            raise Invalid(
                f"Expected numeric value type for {field.kind} {field.key!a}. "
                f"Found {token.text[:60]!a}"
            )
        return float(token.text) if field.kind is Kind.METRIC else _number(token)
    bare = token.mark is Mark.NUMBER and reader.grammar.bare_numbers and field.kind is Kind.PARAM
    if token.mark not in (Mark.TEXT, Mark.EITHER) and not bare:
        raise Invalid(
            f"Expected a quoted string value for {field.kind} {field.key!a} (e.g. 'my-value'). "
            f"Got value {token.text[:60]!a}"
        )
    if op in (Op.LIKE, Op.ILIKE) and (len(token.text) - len(token.text.rstrip("\\"))) % 2:
        raise Invalid("a pattern must not end with a single backslash")
    return token.text


def _is_number(field: Field, grammar: Grammar) -> bool:
    return field.kind is Kind.METRIC or (
        field.kind is Kind.ATTRIBUTE and field.key in grammar.numeric
    )


def _number(token: Token) -> int | float:
    value = float(token.text)
    if value.is_integer() and abs(value) < INT64_MAX // 2:
        # Read as it was written: a float holds only 53 bits of it.
        return int(token.text) if token.text.lstrip("+-").isdigit() else int(value)
    return value
