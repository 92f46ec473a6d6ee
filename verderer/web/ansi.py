"""Terminal output as HTML that cannot do anything but look right.

Colours and bold are kept, as classes. Everything else that a terminal would obey is dropped;
characters that cannot be seen are shown as what they are.
"""

from __future__ import annotations

import re
from typing import Final

from markupsafe import escape

# CSI … final, OSC … BEL or ST, and two-character escapes.
_ESCAPE: Final = re.compile(
    r"\x1b\[([0-9;:]*)([@-~])|\x1b\][^\x07\x1b]{0,2000}(?:\x07|\x1b\\)|\x1b\[[^@-~]{0,40}|\x1b."
)
_UNSEEN: Final = re.compile(r"[\x00-\x08\x0b-\x1f\x7f\u202a-\u202e\u2066-\u2069]")
_PLAIN: Final = {"fg": "", "bg": "", "bold": "", "dim": "", "italic": "", "under": ""}


def to_html(text: str) -> str:
    """One line of output as HTML."""
    if "\x1b" not in text:
        return _seen(text)
    parts: list[str] = []
    style = dict(_PLAIN)
    at = 0
    for found in _ESCAPE.finditer(text):
        parts.append(_piece(text[at : found.start()], style))
        if found[2] == "m":
            _apply(style, found[1] or "0")
        at = found.end()
    parts.append(_piece(text[at:], style))
    return "".join(parts)


def to_text(text: str) -> str:
    """The same line without any escape, for searches."""
    return _ESCAPE.sub("", text) if "\x1b" in text else text


def _piece(text: str, style: dict[str, str]) -> str:
    if not text:
        return ""
    classes = " ".join(c for c in style.values() if c)
    return f'<span class="{classes}">{_seen(text)}</span>' if classes else _seen(text)


def _seen(text: str) -> str:
    return _UNSEEN.sub(lambda m: f'<i class="ctl">{_picture(m[0])}</i>', str(escape(text)))


def _picture(character: str) -> str:
    code = ord(character)
    if code < 32:
        return chr(0x2400 + code)
    return "␡" if code == 127 else f"U+{code:04X}"


def _apply(style: dict[str, str], codes: str) -> None:
    numbers = [int(n) if n else 0 for n in re.split("[;:]", codes)[:32] if len(n) < 5]
    at = 0
    while at < len(numbers):
        n = numbers[at]
        if n in (38, 48):
            at += _extended(style, "fg" if n == 38 else "bg", numbers[at + 1 :])
        else:
            _simple(style, n)
        at += 1


def _simple(style: dict[str, str], n: int) -> None:
    if n == 0:
        style.update(_PLAIN)
    elif n == 22:
        style["bold"] = style["dim"] = ""
    elif n in _FLAGS:
        name, value = _FLAGS[n]
        style[name] = value
    elif 30 <= n <= 37 or 90 <= n <= 97:
        style["fg"] = f"a{n - 30 if n < 90 else n - 82}"
    elif 40 <= n <= 47 or 100 <= n <= 107:
        style["bg"] = f"b{n - 40 if n < 100 else n - 92}"


_FLAGS: Final = {
    1: ("bold", "ab"),
    2: ("dim", "ad"),
    3: ("italic", "ai"),
    4: ("under", "au"),
    23: ("italic", ""),
    24: ("under", ""),
    39: ("fg", ""),
    49: ("bg", ""),
}


def _extended(style: dict[str, str], where: str, rest: list[int]) -> int:
    """256 and true colours become the nearest of the sixteen; how many numbers were used."""
    if rest[:1] == [5] and len(rest) > 1:
        style[where] = f"{'a' if where == 'fg' else 'b'}{_of_256(rest[1])}"
        return 2
    if rest[:1] == [2] and len(rest) > 3:
        style[where] = f"{'a' if where == 'fg' else 'b'}{_nearest(*rest[1:4])}"
        return 4
    return len(rest)


def _of_256(n: int) -> int:
    if n < 16:
        return n
    if n >= 232:
        return 8 if n < 244 else 7
    n -= 16
    return _nearest(*(51 * v for v in (n // 36, n // 6 % 6, n % 6)))


def _nearest(red: int, green: int, blue: int) -> int:
    top = max(red, green, blue)
    if top < 64:
        return 8
    low = top * 0.6
    bits = (red > low) + 2 * (green > low) + 4 * (blue > low)
    return bits + 8 if top > 170 and bits != 7 else bits
