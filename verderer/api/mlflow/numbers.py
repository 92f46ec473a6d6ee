"""Integers out of an address's query."""

from __future__ import annotations

import re

from verderer.core.errors import Invalid
from verderer.core.tracking.limits import INT64_MAX, INT64_MIN

_INT = re.compile(r"-?[0-9]{1,19}\Z")


def int64(text: str | None, name: str) -> int | None:
    """Read an integer; None when there is none.

    Raises:
        Invalid: it is not one of 64 bits.
    """
    if text is None or text == "":
        return None
    if not _INT.match(text) or not INT64_MIN <= int(text) <= INT64_MAX:
        raise Invalid(f"Parameter '{name}' must be an integer, got {text[:40]!a}.")
    return int(text)
