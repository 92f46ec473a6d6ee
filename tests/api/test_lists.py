"""Pages by key and readers' copies."""

from __future__ import annotations

import contextlib

import httpx2
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.rig.people import SYSTEM, Cast
from verderer.api.etags import etag_of, fits
from verderer.api.paging import page_of, read_cursor, write_cursor
from verderer.core.errors import Invalid
from verderer.usecases.context import Context
from verderer.usecases.people.projects import create_project


@given(st.text().filter(lambda t: "\x00" not in t))
def test_a_cursor_gives_its_text_back(key: str) -> None:
    try:
        key.encode()
    except UnicodeEncodeError:
        return
    assert read_cursor(write_cursor(key), str) == key


@given(st.integers(0, (1 << 63) - 1))
def test_a_cursor_gives_its_number_back(key: int) -> None:
    assert read_cursor(write_cursor(key), int) == key


@given(st.text(max_size=100))
def test_no_text_breaks_the_reading_of_cursors(text: str) -> None:
    for kind in (str, int):
        with contextlib.suppress(Invalid):
            read_cursor(text, kind)


@given(st.lists(st.integers(0, 1000), unique=True).map(sorted), st.integers(1, 20))
def test_walking_the_pages_sees_everything_once(rows: list[int], limit: int) -> None:
    seen: list[int] = []
    after = -1
    for _ in range(len(rows) + 2):
        window = [r for r in rows if r > after][: limit + 1]
        page = page_of(window, limit, key=lambda r: r, show=lambda r: r)
        seen += page.items
        if page.next is None:
            break
        after = read_cursor(page.next, int) or 0
    assert seen == rows


async def test_a_list_is_walked_by_its_next(
    ctx: Context, cast: Cast, client: httpx2.AsyncClient
) -> None:
    for n in range(5):
        await create_project(ctx, SYSTEM, name=f"p{n}")
    names: list[str] = []
    after = ""
    for _ in range(10):
        url = f"/api/v1/projects?limit=3&after={after}"
        page = (await client.get(url, headers=cast.root.bearer)).json()
        names += [p["name"] for p in page["items"]]
        after = page["next"]
        if after is None:
            break
    assert names == ["ours", "p0", "p1", "p2", "p3", "p4", "theirs"]


@pytest.mark.parametrize(
    ("sent", "same"),
    [
        ("", False),
        ('"abc"', True),
        ('W/"abc"', True),
        ('"x", "abc"', True),
        ("*", True),
        ('"x"', False),
        ("abc", False),
    ],
)
def test_a_reader_names_the_copies_it_has(sent: str, same: bool) -> None:
    assert fits(sent, '"abc"') == same


def test_a_tag_changes_with_any_byte() -> None:
    assert etag_of(b"a") != etag_of(b"b")


async def test_a_copy_that_is_the_newest_is_not_sent_again(
    cast: Cast, client: httpx2.AsyncClient
) -> None:
    url, bearer = "/api/v1/projects/ours", cast.member.bearer
    first = await client.get(url, headers=bearer)
    again = await client.get(url, headers=bearer | {"if-none-match": first.headers["etag"]})
    assert (again.status_code, again.content) == (304, b"")
    assert again.headers["etag"] == first.headers["etag"]
    stranger = cast.stranger.bearer | {"if-none-match": first.headers["etag"]}
    assert (await client.get(url, headers=stranger)).status_code == 404
