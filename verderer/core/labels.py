"""Short texts that people give to things: names that machines use, and titles."""

from __future__ import annotations

import re
import unicodedata

from verderer.core.errors import Invalid, Problem

_NAME = re.compile(r"[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?")
_NAME_RULE = "1 to 63 of a-z, 0-9 and -, a letter or digit at both ends"
_UNSEEN = frozenset({"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"})


def check_name(text: str, *, field: str) -> str:
    """Return `text` if it can name a project or a cluster.

    Raises:
        Invalid: it cannot; the problem names `field`.
    """
    if not _NAME.fullmatch(text):
        near = re.sub(r"[^a-z0-9]+", "-", text[:63].lower()).strip("-")
        raise _invalid(field, f"a name is {_NAME_RULE}", f"try {near!r}" if near else "")
    return text


def check_title(text: str, *, field: str, most: int = 200, least: int = 0) -> str:
    """Return `text`, without blanks around it, if it is one line that can be shown anywhere.

    Raises:
        Invalid: it is too short or too long, or holds characters that nobody sees.
    """
    title = unicodedata.normalize("NFC", text).strip()
    if any(unicodedata.category(c) in _UNSEEN for c in title):
        raise _invalid(field, "holds line breaks or characters that cannot be seen", "")
    if not least <= len(title) <= most:
        raise _invalid(field, f"must have {least} to {most} characters", "")
    return title


def _invalid(field: str, message: str, hint: str) -> Invalid:
    problem = Problem(field=field, message=message, hint=hint)
    return Invalid(f"{field} is not acceptable", problems=[problem])
