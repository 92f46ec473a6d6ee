"""Host names, other sites' pages, sessions, odd headers, and answers that stay open."""

from __future__ import annotations

from typing import Any

import httpx2
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from litestar import Litestar, Request, get, post

from tests.rig.people import SYSTEM, Cast, make_context
from verderer.api.app import build_app
from verderer.api.auth import ActorArg
from verderer.api.credentials import bearer_of, session_of
from verderer.core.access import Action
from verderer.core.credentials import SESSION_COOKIE
from verderer.core.errors import NotAuthenticated
from verderer.store.database import Database
from verderer.usecases.context import Context
from verderer.usecases.people.users import deactivate_user

METHODS = ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"]


@get("/page", opt={"action": Action.SELF_READ, "session": True})
async def page(actor: ActorArg) -> str:
    return actor.name


@post("/page", opt={"action": Action.SELF_READ, "session": True})
async def send_form(actor: ActorArg) -> str:
    return actor.name


@get("/front", opt={"public": "for everybody", "session": True})
async def front(request: Request[Any, Any, Any]) -> str:
    return str(request.scope["user"])


@pytest.fixture
def app(ctx: Context) -> Litestar:
    return build_app(
        context=ctx,
        objects=None,  # type: ignore[arg-type]
        grants=None,  # type: ignore[arg-type]
        extra_handlers=[page, send_form, front],
    )


def client_of(app: Litestar, base_url: str) -> httpx2.AsyncClient:
    return httpx2.AsyncClient(transport=httpx2.ASGITransport(app=app), base_url=base_url)


@pytest.mark.parametrize(
    ("host", "ok"),
    [
        pytest.param("127.0.0.1:8642", True, id="the address"),
        pytest.param("localhost:8642", True, id="localhost"),
        pytest.param("LOCALHOST", True, id="in capitals"),
        pytest.param("[::1]:8642", True, id="IPv6"),
        pytest.param("verderer.localhost", True, id="a name below localhost"),
        pytest.param("verderer.example.com", True, id="the public name"),
        pytest.param("evil.example.org", False, id="a foreign name"),
        pytest.param("localhost.evil.org", False, id="a foreign name that begins like ours"),
        pytest.param("evil.org:127.0.0.1", False, id="a port that is none"),
        pytest.param("127.0.0.1.evil.org", False, id="a name that begins with the address"),
        pytest.param("localhost@evil.org", False, id="a name behind an at"),
    ],
)
@pytest.mark.parametrize("method", METHODS)
async def test_on_the_loopback_only_our_own_names_are_answered(
    database: Database, host: str, ok: bool, method: str
) -> None:
    ctx = make_context(database, url="https://verderer.example.com")
    app = build_app(context=ctx, objects=None, grants=None)  # type: ignore[arg-type]
    async with client_of(app, "http://127.0.0.1:8642") as client:
        answer = await client.request(method, "/api/v1/me", headers={"host": host})
    if ok:
        assert answer.status_code in (401, 405)
    elif method == "GET":
        assert answer.json()["code"] == "wrong_host"
    else:
        assert answer.status_code in (403, 400, 405)


async def test_on_another_address_any_name_is_answered(ctx: Context) -> None:
    app = build_app(context=ctx, objects=None, grants=None)  # type: ignore[arg-type]
    async with client_of(app, "http://192.0.2.1:8642") as client:
        answer = await client.get("/healthz", headers={"host": "gpu.internal"})
    assert answer.status_code == 200


@pytest.mark.parametrize(
    ("headers", "ok"),
    [
        pytest.param({}, True, id="no browser"),
        pytest.param({"sec-fetch-site": "same-origin"}, True, id="our own page"),
        pytest.param({"sec-fetch-site": "none"}, True, id="typed by the person"),
        pytest.param({"sec-fetch-site": "cross-site"}, False, id="another site"),
        pytest.param({"sec-fetch-site": "same-site"}, False, id="a sibling of our domain"),
        pytest.param({"sec-fetch-site": "junk"}, False, id="junk"),
        pytest.param({"origin": "http://verderer.test"}, True, id="our origin"),
        pytest.param({"origin": "http://evil.test"}, False, id="a foreign origin"),
        pytest.param({"origin": "null"}, False, id="a hidden origin"),
        pytest.param({"origin": "http://127.0.0.1:8642"}, True, id="the public address"),
        pytest.param(
            {"sec-fetch-site": "cross-site", "origin": "http://verderer.test"},
            False,
            id="the browser's word counts more",
        ),
    ],
)
async def test_a_form_of_another_site_is_refused(
    client: httpx2.AsyncClient, cast: Cast, headers: dict[str, str], ok: bool
) -> None:
    cookie = {"cookie": f"{SESSION_COOKIE}={cast.member.session}"}
    answer = await client.post("/page", headers=headers | cookie)
    assert answer.status_code == (201 if ok else 403)
    login = {"email": "a@b", "password": "x"}
    answer = await client.post("/api/v1/login", headers=headers, json=login)
    assert answer.status_code == (401 if ok else 403)


async def test_a_page_takes_a_session_and_nothing_else(
    client: httpx2.AsyncClient, cast: Cast
) -> None:
    async def ask(**headers: str) -> int:
        return (await client.get("/page", headers=headers)).status_code

    mine = f"{SESSION_COOKIE}={cast.member.session}"
    assert await ask(cookie=mine) == 200
    assert await ask(cookie=f"a=b; {mine}; c=d") == 200
    assert await ask(cookie=f"{mine}; {mine}") == 200
    assert await ask(cookie=f"{mine}; {SESSION_COOKIE}={cast.stranger.session}") == 401
    assert await ask(cookie=f"x{mine}") == 401
    assert await ask(cookie="a" * 20_000 + ";" + mine) == 401
    assert await ask(authorization=f"Bearer {cast.member.token}") == 401
    assert await ask() == 401


async def test_a_public_page_knows_who_is_logged_in_and_minds_nobody(
    client: httpx2.AsyncClient, cast: Cast
) -> None:
    headers = {"cookie": f"{SESSION_COOKIE}={cast.member.session}"}
    assert (await client.get("/front", headers=headers)).text == "user:member@example.org"
    assert (await client.get("/front", headers={"cookie": f"{SESSION_COOKIE}=x"})).text == "None"
    assert (await client.get("/front")).text == "None"


async def test_an_open_answer_notices_that_its_reader_was_locked_out(
    ctx: Context, cast: Cast
) -> None:
    rechecks = []

    @get("/open", opt={"action": Action.SELF_READ})
    async def stay_open(request: Request[Any, Any, Any]) -> str:
        rechecks.append(request.scope["state"]["recheck"])
        return ""

    app = build_app(context=ctx, objects=None, grants=None, extra_handlers=[stay_open])  # type: ignore[arg-type]
    async with client_of(app, "http://x") as client:
        await client.get("/open", headers=cast.member.bearer)
    (recheck,) = rechecks
    assert (await recheck()).name == cast.member.email
    await deactivate_user(ctx, SYSTEM, cast.member.email)
    with pytest.raises(NotAuthenticated):
        await recheck()


names = st.sampled_from([b"authorization", b"cookie", b"host", b"x", b"origin"])
values = st.one_of(
    st.binary(max_size=300),
    st.binary(max_size=60).map(lambda b: b"Bearer " + b),
    st.binary(max_size=60).map(lambda b: b"verderer_session=" + b),
)


@given(st.lists(st.tuples(names, values), max_size=6))
def test_no_header_breaks_the_reading_of_credentials(headers: list[tuple[bytes, bytes]]) -> None:
    for read in (bearer_of, session_of):
        try:
            assert isinstance(read(headers), str)
        except NotAuthenticated:
            pass


@settings(
    max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(headers=st.lists(st.tuples(names, values), max_size=4), method=st.sampled_from(METHODS))
async def test_no_header_opens_or_breaks_anything(
    app: Litestar, headers: list[tuple[bytes, bytes]], method: str
) -> None:
    statuses = []

    async def send(message: Any) -> None:
        if message["type"] == "http.response.start":
            statuses.append(message["status"])

    async def receive() -> Any:
        return {"type": "http.request", "body": b"", "more_body": False}

    for server in (("127.0.0.1", 80), ("192.0.2.1", 80), None):
        scope = {
            "type": "http",
            "method": method,
            "path": "/api/v1/me",
            "raw_path": b"/api/v1/me",
            "query_string": b"",
            "headers": headers,
            "server": server,
            "client": None,
            "root_path": "",
            "scheme": "http",
            "http_version": "1.1",
            "asgi": {"version": "3.0"},
        }
        await app(scope, receive, send)  # type: ignore[arg-type]
    assert set(statuses) <= {400, 401, 403, 405}, statuses
    assert len(statuses) == 3
