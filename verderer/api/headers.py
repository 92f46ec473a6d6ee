"""Headers of every answer that tell a browser what it must not do with it."""

from __future__ import annotations

from litestar.types import Message, Scope

# A page that needs more brings its own policy, and only such a page runs anything.
_POLICY = b"default-src 'none'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'"
_ALWAYS = (
    (b"x-content-type-options", b"nosniff"),
    (b"x-frame-options", b"DENY"),
    (b"referrer-policy", b"same-origin"),
    (b"cross-origin-resource-policy", b"same-origin"),
    (b"content-security-policy", _POLICY),
)
_OF_THE_API = (*_ALWAYS, (b"cache-control", b"no-store"))


async def add_headers(message: Message, scope: Scope) -> None:
    """Add what the handler did not set itself; private answers are not cached."""
    if message["type"] != "http.response.start":
        return
    headers = list(message.get("headers", ()))
    wanted = _OF_THE_API if scope["path"].startswith("/api/") else _ALWAYS
    given = {name for name, _ in headers}
    headers.extend([pair for pair in wanted if pair[0] not in given])
    message["headers"] = headers
