"""In what order results come: `metrics.acc DESC`, `attributes.start_time`, …"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from verderer.core.errors import Invalid
from verderer.core.tracking.grammar import Field, Grammar
from verderer.core.tracking.limits import MAX_ORDERINGS
from verderer.core.tracking.search import Reader, unexpected
from verderer.core.tracking.tokens import tokens


@dataclass(frozen=True, slots=True)
class Ordering:
    """One thing to sort by; what lacks it comes last, and NaN before that, either way."""

    field: Field
    ascending: bool = True
    dataset: str | None = None
    """Logged models: only samples on this data set count."""
    digest: str | None = None


def parse_ordering(sources: Sequence[str], grammar: Grammar) -> tuple[Ordering, ...]:
    """Read a list of orderings, the first deciding most.

    Raises:
        Invalid: one cannot be read, cannot be sorted by, or is there twice.
    """
    if len(sources) > MAX_ORDERINGS:
        raise Invalid(f"order_by holds at most {MAX_ORDERINGS} fields")
    found = tuple(_one(source, grammar) for source in sources)
    check_once(found)
    return found


def check_once(found: Sequence[Ordering]) -> None:
    """Raise `Invalid` when a field is there twice."""
    if len({(o.field, o.dataset, o.digest) for o in found}) != len(found):
        raise Invalid("`order_by` contains duplicate fields")


def read_field(source: str, grammar: Grammar) -> Field:
    """Read a name that results can be sorted by.

    Raises:
        Invalid: it is none.
    """
    reader = Reader(tokens(source), grammar)
    field = _orderable(reader.field(), grammar)
    if (rest := reader.peek()) is not None:
        raise unexpected(rest, "nothing more")
    return field


def _one(source: str, grammar: Grammar) -> Ordering:
    reader = Reader(tokens(source), grammar)
    field = _orderable(reader.field(), grammar)
    if reader.done:
        return Ordering(field)
    direction = reader.take("ASC or DESC")
    if not direction.is_word("ASC", "DESC"):
        raise unexpected(direction, "ASC or DESC")
    if (rest := reader.peek()) is not None:
        raise unexpected(rest, "nothing more")
    return Ordering(field, ascending=direction.is_word("ASC"))


def _orderable(field: Field, grammar: Grammar) -> Field:
    if field.kind not in grammar.orderable:
        raise Invalid(f"Invalid order_by entity: {field.kind}")
    return field
