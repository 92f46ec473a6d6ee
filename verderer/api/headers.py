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
)


async def add_headers(message: Message, scope: Scope) -> None:
    """Add what the handler did not set itself; private answers are not cached."""
    if message["type"] != "http.response.start":
        return
    headers = [(bytes(name), bytes(value)) for name, value in message.get("headers", ())]
    given = {name.lower() for name, _ in headers}
    headers.extend(pair for pair in _ALWAYS if pair[0] not in given)
    if b"content-security-policy" not in given:
        headers.append((b"content-security-policy", _POLICY))
    if b"cache-control" not in given and scope.get("path", "").startswith("/api/"):
        headers.append((b"cache-control", b"no-store"))
    message["headers"] = headers
