"""Take credentials out of headers. Whatever is odd about them counts as none or as a wrong one."""

from __future__ import annotations

from collections.abc import Iterable

from verderer.core.credentials import MAX_TOKEN_LENGTH, SESSION_COOKIE
from verderer.usecases.authenticate import refused

RawHeaders = Iterable[tuple[bytes, bytes]]

_SCHEME = b"bearer "
_LONGEST = len(_SCHEME) + MAX_TOKEN_LENGTH
_COOKIE = SESSION_COOKIE.encode() + b"="
_LONGEST_COOKIES = 16_384


def bearer_of(headers: RawHeaders) -> str:
    """The token of `Authorization: Bearer …`; empty when the header is not there.

    Raises:
        NotAuthenticated: there are two, or it is of another form, or longer than any token.
    """
    found = [value for name, value in headers if name == b"authorization"]
    if not found:
        return ""
    value = found[0]
    if len(found) > 1 or len(value) > _LONGEST or value[: len(_SCHEME)].lower() != _SCHEME:
        raise refused(given=True)
    return value[len(_SCHEME) :].decode("latin-1") or " "


def session_of(headers: RawHeaders) -> str:
    """The token of the session cookie; empty when it is not there.

    Raises:
        NotAuthenticated: there are two different ones, or the cookies are absurdly long.
    """
    found = set()
    for name, value in headers:
        if name != b"cookie":
            continue
        if len(value) > _LONGEST_COOKIES:
            raise refused(given=True)
        for part in value.split(b";"):
            cookie = part.strip()
            if cookie.startswith(_COOKIE):
                found.add(cookie[len(_COOKIE) :].strip(b'"'))
    if len(found) > 1:
        raise refused(given=True)
    return found.pop().decode("latin-1") if found else ""


def one_header(headers: RawHeaders, name: bytes) -> str:
    """The header's value, `?` when it is there more than once, empty when it is not there."""
    found = [value for key, value in headers if key == name]
    return found[0].decode("latin-1") if len(found) == 1 else "?" * bool(found)
