"""The time as tracking clients count it."""

from __future__ import annotations

from verderer.usecases.context import Context


def now_ms(ctx: Context) -> int:
    """Milliseconds since 1970."""
    return int(ctx.clock().timestamp() * 1_000)


def new_uid(ctx: Context) -> str:
    """128 random bits as 32 hexadecimal digits: the id of a new run or model."""
    return f"{ctx.chance():016x}{ctx.chance():016x}"
