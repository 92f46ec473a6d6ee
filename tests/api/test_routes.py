"""Every route × every caller: nothing is open by accident, nothing is reachable from outside."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import httpx2
import pytest
from litestar import Litestar, WebSocket, get, websocket
from litestar.types import Receive, Scope, Send

from tests.rig.people import Cast
from verderer.api.app import build_app
from verderer.api.gate import all_handlers, check_routes
from verderer.core.access import Action
from verderer.usecases.context import Context

PUBLIC = {
    "POST /api/v1/login",
    # A join token or a signature of the agent's key in the body opens these.
    "POST /api/v1/agent/join",
    "POST /api/v1/agent/renew",
    "GET /api/v1/openapi.json",
    "GET /api/docs",
    "GET /api/docs/{path:str}",
    "GET /api/docs/openapi.json",
    "GET /healthz",
    "GET /readyz",
    "GET /problems/{code:str}",
}
METHODS = ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"]
CREDENTIALS = [
    pytest.param([], id="nothing"),
    pytest.param([("authorization", "")], id="an empty header"),
    pytest.param([("authorization", "Bearer")], id="a scheme alone"),
    pytest.param([("authorization", "Bearer ")], id="a scheme and a blank"),
    pytest.param([("authorization", "Bearer nothing")], id="Bearer nothing"),
    pytest.param([("authorization", "Bearer vrd_u_" + "a" * 43)], id="a made-up token"),
    pytest.param([("authorization", "Basic YTpi")], id="another scheme"),
    pytest.param([("authorization", "Bearer " + "a" * 1_000_000)], id="a megabyte"),
    pytest.param([("x-forwarded-user", "root@example.org")], id="a name from a proxy"),
]


def concrete(path: str) -> str:
    """A path with something in the place of its parameters."""
    parts = [
        ("1" if p.endswith(":int}") else "x") if p.startswith("{") else p for p in path.split("/")
    ]
    return "/".join(parts)


def routes_of(app: Litestar) -> list[tuple[str, str, Any]]:
    return [
        (str(method), path, handler)
        for path, handler in all_handlers(app)
        for method in getattr(handler, "http_methods", ["GET", "POST"])
    ]


def test_exactly_these_routes_are_public(app: Litestar) -> None:
    public = {f"{m} {p}" for m, p, handler in routes_of(app) if "public" in handler.opt}
    assert public == PUBLIC


@pytest.mark.parametrize("headers", CREDENTIALS)
async def test_without_a_credential_every_other_route_and_method_is_refused(
    app: Litestar, client: httpx2.AsyncClient, headers: list[tuple[str, str]]
) -> None:
    known = {f"{m} {p}" for m, p, _ in routes_of(app)}
    for path in {p for _, p, _ in routes_of(app)}:
        for method in METHODS:
            if f"{method} {path}" in PUBLIC:
                continue
            if method == "OPTIONS" and any(r.endswith(f" {path}") for r in PUBLIC):
                continue
            answer = await client.request(method, concrete(path), headers=headers)
            expected = {401} if f"{method} {path}" in known or method == "OPTIONS" else {405}
            assert answer.status_code in expected, f"{method} {path}"


async def test_two_credentials_are_none(client: httpx2.AsyncClient, cast: Cast) -> None:
    token = ("authorization", f"Bearer {cast.root.token}")
    assert (await client.get("/api/v1/me", headers=[token])).status_code == 200
    assert (await client.get("/api/v1/me", headers=[token, token])).status_code == 401


async def test_the_api_never_looks_at_cookies(client: httpx2.AsyncClient, cast: Cast) -> None:
    for value in (cast.root.session, cast.root.token):
        headers = {"cookie": f"verderer_session={value}"}
        assert (await client.get("/api/v1/me", headers=headers)).status_code == 401
        headers |= cast.member.bearer
        answer = await client.get("/api/v1/me", headers=headers)
        assert answer.json()["email"] == cast.member.email


@dataclass(frozen=True)
class Ask:
    """A request and the statuses it is answered with, by caller."""

    method: str
    path: str
    body: Any
    own: dict[str, int]


# In the order in which they ask: what one changes, those behind him find changed.
EVERYBODY = ("stranger", "member", "reader", "admin", "root")


def everybody(status: int, **others: int) -> dict[str, int]:
    return dict.fromkeys(EVERYBODY, status) | {"agent": 403} | others


ASKS = [
    Ask("GET", "/api/v1/me", None, everybody(200)),
    Ask("POST", "/api/v1/me/password", {"old": "x", "new": "a b c d e f g h"}, everybody(403)),
    Ask("GET", "/api/v1/me/sessions", None, everybody(200)),
    Ask("DELETE", "/api/v1/me/sessions", None, everybody(204, reader=403)),
    Ask("DELETE", "/api/v1/me/sessions/x", None, everybody(404, reader=403)),
    Ask("GET", "/api/v1/me/tokens", None, everybody(200)),
    Ask("POST", "/api/v1/me/tokens", {"name": "ci"}, everybody(201, reader=403)),
    Ask("DELETE", "/api/v1/me/tokens/2147483647", None, everybody(404, reader=403)),
    Ask("GET", "/api/v1/projects", None, everybody(200)),
    Ask("POST", "/api/v1/projects", {"name": "new"}, everybody(403, root=201)),
    Ask("GET", "/api/v1/projects/ours", None, everybody(200, stranger=404)),
    Ask("GET", "/api/v1/projects/ours/members", None, everybody(200, stranger=404)),
    Ask(
        "PUT",
        "/api/v1/projects/ours/members/stranger@example.org",
        {"role": "member"},
        everybody(403, stranger=404, admin=200, root=200),
    ),
    Ask(
        "DELETE",
        "/api/v1/projects/ours/members/member@example.org",
        None,
        everybody(403, stranger=404, admin=204, root=404),
    ),
    Ask("GET", "/api/v1/users", None, everybody(403, root=200)),
    Ask("POST", "/api/v1/users", {"email": "a@b"}, everybody(403, root=201)),
    Ask("GET", "/api/v1/users/root@example.org", None, everybody(403, root=200)),
    Ask("PATCH", "/api/v1/users/reader@example.org", {"active": True}, everybody(403, root=200)),
    Ask("POST", "/api/v1/users/reader@example.org/password", None, everybody(403, root=201)),
]


def test_the_table_asks_every_route_that_is_not_public(app: Litestar) -> None:
    def shape(path: str) -> str:
        return "/".join(
            "*" if p.startswith("{") or "@" in p or p in ("ours", "x", "2147483647") else p
            for p in path.split("/")
        )

    asked = {f"{a.method} {shape(a.path)}" for a in ASKS}
    routes = {f"{m} {shape(p)}" for m, p, h in routes_of(app) if "public" not in h.opt}
    assert asked == routes


@pytest.mark.parametrize("ask", ASKS, ids=lambda a: f"{a.method} {a.path}")
async def test_every_caller_gets_what_the_table_says(
    client: httpx2.AsyncClient, cast: Cast, ask: Ask
) -> None:
    for who, status in ask.own.items():
        bearer = cast.agent if who == "agent" else getattr(cast, who).token
        answer = await client.request(
            ask.method,
            ask.path,
            json=ask.body,
            headers={"authorization": f"Bearer {bearer}"},
        )
        assert answer.status_code == status, f"{who}: {answer.text}"


async def test_nothing_of_a_foreign_project_is_in_any_answer(
    client: httpx2.AsyncClient, cast: Cast
) -> None:
    """Whatever a stranger reads, no name of `ours` or of its people comes out."""
    for ask in ASKS:
        if ask.method == "GET" and "/users" not in ask.path:
            answer = await client.get(ask.path, headers=cast.stranger.bearer)
            for name in ("ours", "member@", "admin@", "reader@"):
                assert name not in answer.text, ask.path


async def test_a_missing_and_a_foreign_project_are_answered_alike(
    client: httpx2.AsyncClient, cast: Cast
) -> None:
    answers = [
        await client.get(f"/api/v1/projects/{name}", headers=cast.stranger.bearer)
        for name in ("ours", "no-such-project")
    ]
    assert answers[0].json() == answers[1].json()


def handler_without_a_word() -> Any:
    @get("/forgotten")
    async def forgotten() -> str:
        return ""

    return forgotten


def socket_without_a_word() -> Any:
    @websocket("/forgotten")
    async def forgotten(socket: WebSocket[Any, Any, Any]) -> None:
        return None

    return forgotten


def handler_with_both() -> Any:
    @get("/both", opt={"action": Action.SELF_READ, "public": "x"})
    async def both() -> str:
        return ""

    return both


def handler_with_a_text_for_an_action() -> Any:
    @get("/text", opt={"action": "self.read"})
    async def text() -> str:
        return ""

    return text


@pytest.mark.parametrize(
    "make",
    [
        handler_without_a_word,
        socket_without_a_word,
        handler_with_both,
        handler_with_a_text_for_an_action,
    ],
)
def test_the_server_does_not_start_with_a_route_that_says_nothing(ctx: Context, make: Any) -> None:
    with pytest.raises(ValueError, match="need either an action"):
        build_app(context=ctx, objects=None, grants=None, extra_handlers=[make()])  # type: ignore[arg-type]


async def test_a_route_that_slips_in_later_is_refused_all_the_same(
    app: Litestar, client: httpx2.AsyncClient, cast: Cast
) -> None:
    app.register(handler_without_a_word())
    with pytest.raises(ValueError, match="forgotten"):
        check_routes(app)
    assert (await client.get("/forgotten")).status_code == 401
    assert (await client.get("/forgotten", headers=cast.root.bearer)).status_code == 403


def raw(status: int) -> Any:
    async def answer(scope: Scope, receive: Receive, send: Send) -> None:
        actor = scope["user"]
        await send({"type": "http.response.start", "status": status, "headers": []})
        body = str(actor).encode()
        await send({"type": "http.response.body", "body": body, "more_body": False})

    return answer


async def test_a_plain_asgi_route_stands_behind_the_same_gate(ctx: Context, cast: Cast) -> None:
    from litestar import asgi

    hot = asgi("/hot", opt={"action": Action.AGENT_SYNC}, copy_scope=False)(raw(200))
    app = build_app(context=ctx, objects=None, grants=None, extra_handlers=[hot])  # type: ignore[arg-type]
    transport = httpx2.ASGITransport(app=app)
    async with httpx2.AsyncClient(transport=transport, base_url="http://x") as client:
        assert (await client.post("/hot")).status_code == 401
        assert (await client.post("/hot", headers=cast.root.bearer)).status_code == 403
        answer = await client.post("/hot", headers={"authorization": f"Bearer {cast.agent}"})
        assert answer.text == "agent:local"
        assert answer.headers["x-content-type-options"] == "nosniff"
