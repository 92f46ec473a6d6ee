"""Turns bytes into text, or says which byte is wrong and where it stands."""

from __future__ import annotations

import re
from typing import Final

from verderer.core.errors import Invalid
from verderer.core.pipeline.limits import MAX_BYTES
from verderer.core.pipeline.reading.problems import Place, refuse

_NOT_PRINTABLE: Final = re.compile(
    "[^\x09\x0a\x0d\x20-\x7e\x85\xa0-\ud7ff\ue000-\ufefe\uff00-\ufffd\U00010000-\U0010ffff]"
)


def decode(data: bytes) -> str:
    """Read bytes as UTF-8, with or without a byte order mark.

    Raises:
        Invalid: too long, not UTF-8, or with control characters; says where.
    """
    if len(data) > MAX_BYTES:
        size = f"{len(data) / MAX_BYTES:,.1f} MiB"
        raise refuse(
            f"it is {size} long, and {MAX_BYTES // 2**20} MiB is the limit",
            hint="keep data and long programs in the image or in storage",
        )
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as e:
        raise _not_utf8(data, e) from None
    if found := _NOT_PRINTABLE.search(text):
        place = place_at(text, found.start())
        raise refuse(
            f"a control character, U+{ord(found[0]):04X}, which YAML does not allow",
            place=place,
            hint='inside double quotes it can be written as an escape such as "\\x07"',
        )
    return text


def place_at(text: str, index: int) -> Place:
    """The place of the character at `index`."""
    line_start = text.rfind("\n", 0, index) + 1
    return Place(text.count("\n", 0, index) + 1, index - line_start + 1, index, index + 1)


def _not_utf8(data: bytes, error: UnicodeDecodeError) -> Invalid:
    offset = error.start
    line_start = data.rfind(b"\n", 0, offset) + 1
    column = len(data[line_start:offset].decode("utf-8", "replace")) + 1
    encoding = "UTF-16" if data[:2] in (b"\xff\xfe", b"\xfe\xff") else "another encoding"
    return refuse(
        f"byte {offset} (0x{data[offset]:02x}) is not UTF-8",
        place=Place(data.count(b"\n", 0, offset) + 1, column, offset, offset + 1),
        hint=f"it looks like {encoding}; save the file as UTF-8",
    )
