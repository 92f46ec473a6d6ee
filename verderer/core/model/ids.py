"""Identifiers that people see.

A run's id is 63 bits: milliseconds since 2020 (41 bits, until 2089) above 22 random bits. So it
sorts by time, needs no counter that would tell a tenant how busy the others are, and is written
with 13 characters of Crockford's base 32 (no i, l, o, u): https://www.crockford.com/base32.html
"""

from __future__ import annotations

_ALPHABET = "0123456789abcdefghjkmnpqrstvwxyz"
_PAIRS = tuple(a + b for a in _ALPHABET for b in _ALPHABET)
_VALUES = {c: i for i, c in enumerate(_ALPHABET)} | {"o": 0, "i": 1, "l": 1}
_EPOCH_MS = 1_577_836_800_000
RANDOM_BITS = 22
MAX_ID = (1 << 63) - 1


def make_run_id(*, unix_ms: int, chance: int) -> int:
    """Compose an id from the wall clock and a random number (its low 22 bits are used)."""
    at = max(0, min(unix_ms - _EPOCH_MS, (1 << 41) - 1))
    return at << RANDOM_BITS | (chance & ((1 << RANDOM_BITS) - 1))


def run_id_text(value: int) -> str:
    """Write an id the way people see it: 13 lower-case characters."""
    # Two characters at a time: lists and batches write thousands of these.
    pairs = [_PAIRS[(value >> shift) & 1023] for shift in (50, 40, 30, 20, 10, 0)]
    return _ALPHABET[(value >> 60) & 31] + "".join(pairs)


def parse_run_id(text: str) -> int:
    """Read what a person typed; case and the confusable letters o, i, l are forgiven.

    Raises:
        ValueError: it is not a run id.
    """
    cleaned = text.strip().lower()
    if len(cleaned) != 13 or any(c not in _VALUES for c in cleaned):
        raise ValueError(f"not a run id: {text!r}")
    value = 0
    for c in cleaned:
        value = value << 5 | _VALUES[c]
    if value > MAX_ID:
        raise ValueError(f"not a run id: {text!r}")
    return value
