"""The cluster's times as Unix milliseconds."""

from __future__ import annotations

from datetime import UTC, datetime


def unix_ms(text: str | None) -> int | None:
    """Milliseconds of an RFC 3339 time; None for none, for nonsense, and for the epoch itself.

    A container that never ran is said to have started in 1970.
    """
    nanoseconds = unix_ns(text)
    return nanoseconds // 1_000_000 if nanoseconds else None


def unix_ns(text: str | None) -> int | None:
    """Nanoseconds of an RFC 3339 time in UTC with up to nine decimals; None for nonsense."""
    if not text:
        return None
    head, _, rest = text.partition(".")
    digits = rest[: len(rest) - len(rest.lstrip("0123456789"))]
    try:
        moment = datetime.fromisoformat(head + rest[len(digits) :] if rest else text)
    except ValueError:
        return None
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    return int(moment.timestamp()) * 1_000_000_000 + int(digits[:9].ljust(9, "0"))


def rfc3339(unix_ms: int) -> str:
    """The other way round, in UTC with milliseconds."""
    moment = datetime.fromtimestamp(unix_ms / 1000, UTC)
    return moment.strftime("%Y-%m-%dT%H:%M:%S.") + f"{unix_ms % 1000:03d}Z"
