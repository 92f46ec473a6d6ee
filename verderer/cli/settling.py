"""Spares the garbage collector what a process made while it started."""

from __future__ import annotations

import asyncio
import gc
from collections.abc import Coroutine
from typing import Any, TypeVar

_AFTER_S = 1.0
"""By then imports, routes and first connections are made."""

T = TypeVar("T")


def settle_soon() -> None:
    """In a while, set aside all that is there for good.

    A full collection looks at every object, of which a server has made 100,000 before its first
    request and drops none: it took a third of the time of small requests and stopped all of them
    for a tenth of a second now and then.
    """
    asyncio.get_running_loop().call_later(_AFTER_S, _settle)


async def settled(work: Coroutine[Any, Any, T]) -> T:
    """Do the work of a process that lives long."""
    settle_soon()
    return await work


def _settle() -> None:
    gc.collect()
    gc.freeze()
