"""Secrets are planted everywhere and looked for everywhere: log, audit, database, answers."""

from __future__ import annotations

import io
from collections.abc import Iterator
from typing import Any, Literal

import httpx2
import pytest
import structlog
from litestar import Litestar, Request, post

from tests.rig.people import Cast
from verderer.api.app import build_app
from verderer.api.auth import ContextArg
from verderer.core.errors import Fault
from verderer.store.database import Database
from verderer.telemetry import logs
from verderer.usecases.authenticate import authenticate
from verderer.usecases.context import Context
from verderer.usecases.people.account import change_password
from verderer.usecases.people.bootstrap import bootstrap
from verderer.usecases.people.login import login

TYPED = ["canary-right-password", "canary-wrong-password", "canary-in-the-email-field"]


@post("/api/v1/breaks", opt={"public": "a test"})
async def breaks(request: Request[Any, Any, Any], context: ContextArg) -> None:
    """A handler with everything secret in its local variables, which then fails."""
    body = await request.json()
    password, key = body["password"], context.key
    raise RuntimeError(f"cannot handle {len(password)} and {len(key)}")


@post("/api/v1/away", opt={"public": "a test"})
async def away() -> None:
    raise Fault("postgresql://verderer:canary-database-password@db7/verderer is away")


@pytest.fixture
def app(ctx: Context) -> Litestar:
    return build_app(
        context=ctx,
        objects=None,  # type: ignore[arg-type]
        grants=None,  # type: ignore[arg-type]
        extra_handlers=[breaks, away],
    )


@pytest.fixture(params=["json", "text"])
def log(request: pytest.FixtureRequest) -> Iterator[io.StringIO]:
    stream = io.StringIO()
    kind: Literal["json", "text"] = request.param
    logs.configure(role="test", format=kind, level="debug", stream=stream)
    yield stream
    structlog.reset_defaults()


async def everything(database: Database) -> str:
    """Every row of every table, as text."""
    async with database.reading() as connection:
        tables = await connection.fetch(
            "SELECT format('%I', tablename) AS t FROM pg_tables WHERE schemaname = 'public'"
        )
        rows = [
            row["line"]
            for table in tables
            for row in await connection.fetch(f"SELECT x::text AS line FROM {table['t']} AS x")
        ]
    return "\n".join(rows)


async def test_no_secret_comes_out_anywhere(
    ctx: Context, client: httpx2.AsyncClient, database: Database, log: io.StringIO
) -> None:
    right, wrong, misplaced = TYPED
    first = await bootstrap(ctx)
    assert first is not None
    opened = await login(ctx, email=first.email, password=first.password)
    admin = await authenticate(ctx, session=opened.token)
    await change_password(ctx, admin, old=first.password, new=right, session=opened.token)

    async def ask(method: str, path: str, body: Any = None, token: str = "") -> Any:
        headers = {"authorization": f"Bearer {token}"} if token else {}
        return await client.request(method, f"/api/v1{path}", json=body, headers=headers)

    shown = (await ask("POST", "/login", {"email": first.email, "password": right})).json()
    token = shown["token"]
    answers = [
        await ask("POST", "/login", {"email": first.email, "password": wrong}),
        await ask("POST", "/login", {"email": misplaced, "password": wrong}),
        await ask("POST", "/login", {"email": [misplaced], "password": {"x": wrong}}),
        await ask("POST", "/breaks", {"password": right}),
        await ask("POST", "/away"),
        await ask("POST", "/me/password", {"old": wrong, "new": misplaced}, token),
        await ask("GET", f"/me?token={wrong}"),
        await ask("GET", "/me", token=token + "x"),
    ]
    made = (await ask("POST", "/me/tokens", {"name": "ci"}, token)).json()["token"]
    user = (await ask("POST", "/users", {"email": "new@example.org"}, token)).json()["password"]
    readable = ["/me", "/me/tokens", "/me/sessions", "/users", "/projects/demo/members"]
    answers += [await ask("GET", path, token=token) for path in readable]
    for _ in range(12):
        await ask("POST", "/login", {"email": first.email, "password": wrong})

    text = log.getvalue()
    assert "request failed unexpectedly" in text, "the log was written"
    places = {
        "log": text,
        "database": await everything(database),
        "answers": "\n".join(f"{a.headers}{a.text}" for a in answers),
    }
    secrets = [*TYPED, first.password, opened.token, token, made, user]
    secrets += ["canary-database-password", ctx.key.decode()]
    for place, content in places.items():
        for secret in secrets:
            assert secret not in content, f"{secret[:9]}… is in the {place}"


async def test_a_person_hears_the_same_about_known_and_unknown_accounts(
    client: httpx2.AsyncClient, cast: Cast
) -> None:
    bodies = [
        {"email": email, "password": "wrong"}
        for email in (cast.member.email, "nobody@example.org", "not an address", "\x00")
    ]
    answers = [(await client.post("/api/v1/login", json=b)).json() for b in bodies]
    assert all(a == answers[0] for a in answers)
