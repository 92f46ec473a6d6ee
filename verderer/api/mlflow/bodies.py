"""Read what clients send: JSON in which 64-bit integers may be texts, and NaN may be anything."""

from __future__ import annotations

import json
from typing import Any, TypeVar

import msgspec
from litestar.types import Receive

from verderer.core.errors import Invalid, TooLarge

In = TypeVar("In")


_DECODERS: dict[type[Any], msgspec.json.Decoder[Any]] = {}
"""One for each document, made when it is first read."""


def _decoder(document: type[In]) -> msgspec.json.Decoder[In]:
    found = _DECODERS.get(document)
    if found is None:
        # Not strict: "12" is 12 and "NaN" is NaN, as protocol buffers write them.
        found = _DECODERS[document] = msgspec.json.Decoder(document, strict=False)
    return found


def decode(body: bytes, document: type[In]) -> In:
    """Read a body; an empty one is `{}`.

    Raises:
        Invalid: it is not JSON, or does not fit the document.
    """
    try:
        return _decoder(document).decode(body or b"{}")
    except msgspec.ValidationError as e:
        raise Invalid(f"Invalid request: {e}") from e
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError) as e:
        if b"NaN" in body or b"Infinity" in body:
            return _with_bare_nan(body, document)
        raise Invalid(f"Invalid request: {e}") from e


def _with_bare_nan(body: bytes, document: type[In]) -> In:
    """Python's own JSON has NaN and the infinities without quotes, and some clients send that."""
    try:
        return msgspec.convert(json.loads(body), document, strict=False)
    except (ValueError, RecursionError) as e:
        raise Invalid(f"Invalid request: {e}") from e


async def read_body(receive: Receive, limit: int) -> bytes:
    """All of a request's body.

    Raises:
        TooLarge: it has more than `limit` bytes.
        Invalid: the client hung up.
    """
    parts: list[bytes] = []
    size = 0
    while True:
        message = await receive()
        if message["type"] != "http.request":
            raise Invalid("the connection ended within the body")
        part = message["body"]
        size += len(part)
        if size > limit:
            raise TooLarge(f"the body has more than {limit} bytes")
        parts.append(part)
        if not message["more_body"]:
            return parts[0] if len(parts) == 1 else b"".join(parts)
