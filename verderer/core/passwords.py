"""Which passwords and e-mail addresses are accepted.

Length is what makes a password strong, so no rule asks for digits or signs (NIST SP 800-63B,
OWASP ASVS 5.0 chapter 6); what everybody tries first is refused.
"""

from __future__ import annotations

import re
import unicodedata

from verderer.core.errors import Invalid, Problem

MIN_PASSWORD = 12
MAX_PASSWORD = 256
_MIN_DIFFERENT = 6
_MAX_EMAIL = 254
_EMAIL = re.compile(
    r"[^@\s\x00-\x1f\x7f\ud800-\udfff<>\"(),:;\[\\\]]{1,64}@[a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?"
)
_ROWS = ("abcdefghijklmnopqrstuvwxyz", "qwertyuiopasdfghjklzxcvbnm", "0123456789")
_TRIED_FIRST = (
    "password", "passw0rd", "verderer", "administrator", "admin", "letmein", "changeme",
    "welcome", "iloveyou", "monkey", "dragon", "football", "secret", "qwerty", "default", "root",
)  # fmt: skip


def canonical_password(text: str) -> str:
    """One spelling for one password, whatever keyboard or system composed its characters."""
    return unicodedata.normalize("NFKC", text)


def canonical_email(text: str) -> str:
    """Lower case, without blanks around it.

    Raises:
        Invalid: it is not an e-mail address.
    """
    email = unicodedata.normalize("NFC", text).strip().lower()
    if len(email) > _MAX_EMAIL or not _EMAIL.fullmatch(email):
        problem = Problem(field="email", message="not an e-mail address", hint="ana@example.org")
        raise Invalid("the e-mail address is not one", problems=[problem])
    return email


def check_password(password: str, *, email: str, field: str = "password") -> None:
    """Return if `password` may protect the account `email`.

    Raises:
        Invalid: it is too short, too long or one of those that are tried first.
    """
    if why := _weakness(canonical_password(password), email):
        hint = "A few words that only you would put together do well."
        problem = Problem(field=field, message=why, hint=hint)
        raise Invalid("choose another password", problems=[problem], code="weak_password")


def _weakness(password: str, email: str) -> str:
    if len(password) < MIN_PASSWORD:
        return f"shorter than {MIN_PASSWORD} characters"
    if len(password) > MAX_PASSWORD:
        return f"longer than {MAX_PASSWORD} characters"
    if "\x00" in password:
        return "holds a NUL character"
    if len(set(password)) < _MIN_DIFFERENT:
        return "made of very few different characters"
    plain = password.casefold()
    local = email.partition("@")[0]
    words = (*_TRIED_FIRST, *([local] if len(local) >= 4 else []))
    rest = plain
    for word in words:
        rest = rest.replace(word, "")
    rest = re.sub(r"[\d\W_]", "", rest)
    if rest != re.sub(r"[\d\W_]", "", plain) and len(rest) < 4:
        return "made of words that are tried first"
    if any(
        plain[:MIN_PASSWORD] in row * 3 or plain[::-1][:MIN_PASSWORD] in row * 3 for row in _ROWS
    ):
        return "a row of the keyboard"
    return ""
