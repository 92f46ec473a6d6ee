"""One command's conversation with the server."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine
from typing import TYPE_CHECKING, Any, TypeVar

from verderer.cli.commands import contexts

if TYPE_CHECKING:
    from verderer.wire.client import ApiClient

T = TypeVar("T")

API = "/api/v1"
_PATIENCE_S = 1.0
_FRAMES = "⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏"


def ask(work: Callable[[ApiClient], Awaitable[T]], *, doing: str) -> T:
    """Run `work` with a client of the chosen context; `doing` is shown when it takes a while.

    Raises: whatever `ApiClient` raises; `NotAuthenticated` when nobody is logged in.
    """
    context = contexts.logged_in()

    async def whole() -> T:
        async with client_of(context) as client, patiently(doing):
            return await work(client)

    return run(whole())


def run(work: Coroutine[Any, Any, T]) -> T:
    """Run `work` to its end. (asyncio is a fifth of the start-up time, so it is loaded here.)"""
    import asyncio

    return asyncio.run(work)


def client_of(context: contexts.Context) -> ApiClient:
    """A client that speaks as whoever is logged in."""
    from verderer.wire.client import ApiClient

    return ApiClient(context.url, token=context.token, ca_file=context.ca_file or None)


@contextlib.asynccontextmanager
async def patiently(doing: str) -> AsyncIterator[None]:
    """Show that something is going on once it has taken a second, on a terminal."""
    import asyncio

    if not sys.stderr.isatty():
        yield
        return
    spinner = asyncio.create_task(_spin(doing))
    try:
        yield
    finally:
        spinner.cancel()
        await asyncio.gather(spinner, return_exceptions=True)


async def _spin(doing: str) -> None:
    import asyncio

    await asyncio.sleep(_PATIENCE_S)
    frame = 0
    try:
        while True:
            sys.stderr.write(f"\r{_FRAMES[frame % len(_FRAMES)]} {doing} …")
            sys.stderr.flush()
            frame += 1
            await asyncio.sleep(0.1)
    finally:
        sys.stderr.write("\r\x1b[K")
        sys.stderr.flush()


async def collect(
    client: ApiClient, path: str, item: type[T], *, most: int, **query: Any
) -> tuple[list[T], bool]:
    """Items of a list, page by page, up to `most`; and whether there are more."""
    from verderer.wire.users import Listing

    found: list[T] = []
    after = ""
    while True:
        asked = {**query, "limit": min(200, most - len(found) or 1), "after": after or None}
        page = await client.get(API + path, Listing[item], **asked)  # type: ignore[valid-type]
        found += page.items
        if page.next is None:
            return found[:most], len(found) > most
        if len(found) >= most:
            return found[:most], True
        after = page.next


async def the_run(client: ApiClient, text: str) -> str:
    """The id that a person means: an id in any case, or the name of a run (the newest).

    Raises:
        NotFound: there is no such run.
    """
    from verderer.core.errors import NotFound
    from verderer.core.model.ids import parse_run_id, run_id_text
    from verderer.wire.runs import RunOut
    from verderer.wire.users import Listing

    try:
        return run_id_text(parse_run_id(text))
    except ValueError:
        found = await client.get(f"{API}/runs", Listing[RunOut], name=text[:200], limit=1)
        if not found.items:
            raise NotFound(
                f"there is no run {text!r}", hint="`verderer runs` lists ids and names."
            ) from None
        return found.items[0].id
