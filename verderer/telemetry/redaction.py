"""Keeps secrets out of the log, by the name of a value and by what it looks like."""

from __future__ import annotations

import re
from collections.abc import Mapping, MutableMapping
from typing import Any

MASK = "********"

_NAMED_SECRET = frozenset(
    {"token", "password", "passwd", "secret", "authorization", "cookie", "credential", "apikey"}
)
_WORDS = re.compile(r"[A-Z]?[a-z]+|[A-Z]+")
_API_KEY = re.compile(r"(?i)(api|access|secret|private)[-_]?key$")
_TOO_DEEP = 6

_LOOKS = (
    # Our own tokens: the kind stays, so that a reader can tell an agent's from a user's.
    (re.compile(r"\b(vrd_(?:[a-z]+_)?)[A-Za-z0-9_\-]{6,}"), rf"\1{MASK}"),
    (re.compile(r"(?i)\b(bearer|basic)\s+[A-Za-z0-9._~+/=\-]{8,}"), rf"\1 {MASK}"),
    (re.compile(r"\beyJ[A-Za-z0-9_\-]+\.[A-Za-z0-9_\-]+\.[A-Za-z0-9_\-]*"), MASK),
    (re.compile(r"([a-z][a-z0-9+.\-]*://[^\s:/@]*):[^\s@/]+@", re.IGNORECASE), rf"\1:{MASK}@"),
    (
        re.compile(r"(?i)\b((?:X-Amz-Signature|signature|token|password|secret)=)[^&\s\"']+"),
        rf"\1{MASK}",
    ),
)


def redact(_logger: object, _method: str, event: MutableMapping[str, Any]) -> Mapping[str, Any]:
    """A structlog processor: the same event with every secret masked."""
    return {key: _clean(key, value, 0) for key, value in event.items()}


def redact_text(text: str) -> str:
    """Mask what looks like a secret anywhere in `text`."""
    for pattern, masked in _LOOKS:
        text = pattern.sub(masked, text)
    return text


def _clean(key: str, value: object, depth: int) -> object:
    if isinstance(value, bool | int | float) or value is None:
        return value  # `tokens=512` is a count, not a credential
    if _names_a_secret(key):
        return MASK
    if isinstance(value, str):
        return redact_text(value)
    if isinstance(value, bytes):
        return redact_text(value.decode(errors="replace"))
    if depth >= _TOO_DEEP:
        return "..."
    if isinstance(value, Mapping):
        return {str(k): _clean(str(k), v, depth + 1) for k, v in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [_clean("", v, depth + 1) for v in value]
    return redact_text(str(value))


def _names_a_secret(key: str) -> bool:
    if _API_KEY.search(key):
        return True
    return any(word.lower().removesuffix("s") in _NAMED_SECRET for word in _WORDS.findall(key))
