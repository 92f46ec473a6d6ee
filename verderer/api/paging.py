"""Lists are paged by key: `?limit=50&after=…` gives `{"items": […], "next": "…"}`.

The cursor is the key of the last item, made opaque so that nobody builds on its form. It carries
no rights: what a reader may see is decided anew for every page.
"""

from __future__ import annotations

from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Callable, Sequence
from typing import Annotated, Any, Generic, TypeVar

import msgspec
from litestar.params import QueryParameter

from verderer.core.errors import Invalid, Problem

T = TypeVar("T")
R = TypeVar("R")
K = TypeVar("K", bound=str | int | list[Any])

USUAL = 50
MOST = 200
_LONGEST_CURSOR = 1_024

LimitArg = Annotated[int, QueryParameter(ge=1, le=MOST, description="How many items at most.")]
AfterArg = Annotated[
    str, QueryParameter(max_length=_LONGEST_CURSOR, description="`next` of the page before.")
]


class Page(msgspec.Struct, Generic[T], frozen=True):
    """One page of a list; `next` is null on the last one."""

    items: list[T]
    next: str | None = None


def page_of(
    rows: Sequence[R], limit: int, *, key: Callable[[R], object], show: Callable[[R], T]
) -> Page[T]:
    """Make a page of up to `limit + 1` rows; the one too many says that another page follows."""
    shown = rows[:limit]
    following = write_cursor(key(shown[-1])) if len(rows) > limit and shown else None
    return Page([show(row) for row in shown], following)


def write_cursor(key: object) -> str:
    """Make a key opaque: a text, a number, or a list of them."""
    return urlsafe_b64encode(msgspec.json.encode(key)).rstrip(b"=").decode()


def read_cursor(cursor: str, kind: type[K]) -> K | None:
    """The key in `cursor`; None when it is empty.

    Raises:
        Invalid: nobody here wrote it.
    """
    if not cursor:
        return None
    try:
        raw = urlsafe_b64decode(cursor + "=" * (-len(cursor) % 4))
        key: K = msgspec.json.decode(raw, type=kind)
    except (ValueError, msgspec.MsgspecError, RecursionError) as e:
        raise _strange() from e
    if isinstance(key, str) and "\x00" in key:
        raise _strange()
    if isinstance(key, int) and not 0 <= key < 1 << 63:
        raise _strange()
    return key


def _strange() -> Invalid:
    problem = Problem(field="after", message="not a cursor of this list")
    return Invalid("after is not a cursor", problems=[problem])
