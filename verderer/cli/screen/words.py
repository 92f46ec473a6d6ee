"""Times, durations and sizes in the few characters that a table has room for."""

from __future__ import annotations

from datetime import UTC, datetime

_UNITS = ("B", "KiB", "MiB", "GiB", "TiB", "PiB")


def span(seconds: float | None) -> str:
    """`0.4s`, `12s`, `3m20s`, `6h12m`, `4d3h`; empty for None."""
    if seconds is None:
        return ""
    seconds = max(0.0, seconds)
    if seconds < 10:
        return f"{seconds:.1f}s"
    whole = round(seconds)
    if whole < 60:
        return f"{whole}s"
    for size, unit, part, small in ((86_400, "d", 3_600, "h"), (3_600, "h", 60, "m")):
        if whole >= size:
            return _two(whole // size, unit, whole % size // part, small)
    return _two(whole // 60, "m", whole % 60, "s")


def _two(big: int, unit: str, rest: int, small: str) -> str:
    return f"{big}{unit}{rest}{small}" if rest else f"{big}{unit}"


def ago(at: datetime | None, now: datetime | None = None) -> str:
    """How long ago, in one unit: `just now`, `5m ago`, `40d ago`."""
    if at is None:
        return ""
    seconds = ((now or datetime.now(UTC)) - at).total_seconds()
    if seconds < 5:
        return "just now"
    for unit, size, most in (("s", 1, 60), ("m", 60, 60), ("h", 3_600, 48)):
        if seconds < size * most:
            return f"{int(seconds // size)}{unit} ago"
    return f"{int(seconds // 86_400)}d ago"


def lasted(start: datetime | None, end: datetime | None, now: datetime | None = None) -> str:
    """From `start` to `end`, or to now while there is no end."""
    if start is None:
        return ""
    return span(((end or now or datetime.now(UTC)) - start).total_seconds())


def size(amount: int | None) -> str:
    """Bytes in the largest binary unit that leaves at least 1."""
    if amount is None:
        return ""
    value, unit = float(amount), 0
    while value >= 1024 and unit < len(_UNITS) - 1:
        value, unit = value / 1024, unit + 1
    return (
        f"{value:.0f} {_UNITS[unit]}"
        if value >= 100 or unit == 0
        else f"{value:.1f} {_UNITS[unit]}"
    )


def quantity(text: str, resource: str) -> str:
    """A Kubernetes quantity as people say it: bytes in a round unit, the rest as it is."""
    from verderer.core.model.resources import counts_bytes, parse_quantity

    if not counts_bytes(resource):
        return text
    try:
        return size(parse_quantity(text, resource=resource))
    except ValueError:
        return text


def counted(number: int, noun: str, plural: str = "") -> str:
    """`1 step`, `2 steps`."""
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {plural or noun + 's'}"
