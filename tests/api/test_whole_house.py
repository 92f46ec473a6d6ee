"""The application as it is served, every door mounted: nothing answers without a credential."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import httpx2
import pytest
from litestar import Litestar

from tests.api.test_routes import METHODS, concrete, routes_of
from tests.rig.people import Cast
from verderer.cli.serving import application
from verderer.core.credentials import SESSION_COOKIE
from verderer.settings import ObjectSettings, Secret, SecuritySettings, Settings
from verderer.usecases.context import Context

# What the framework says about the handlers of other rooms is for their own tests.
pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")

# Everything that anybody may ask. Whoever adds to it says here why that is safe.
PUBLIC = {
    "/healthz",
    "/readyz",
    "/metrics",  # its own token
    "/problems/{code:str}",
    "/api/docs",
    "/api/docs/openapi.json",
    "/api/docs/{path:str}",
    "/api/v1/openapi.json",
    "/api/v1/pipelines/schema",  # the same everywhere
    "/api/v1/login",  # a password is the credential
    "/api/v1/agent/join",  # a join token is
    "/api/v1/agent/renew",  # a signature is
    "/api/v1/carry/grants",  # a ticket for the files of one step is
    "/login",
    "/preferences",  # theme and language, in cookies of the reader's own
    "/assets/{name:path}",
    "/favicon.ico",
    "/{path:path}",  # says that there is nothing
    "/runs/{run:str}/{rest:str}",  # likewise
    "/clusters/{cluster_id:str}/{rest:str}",
    "/projects/{name:str}/{rest:str}",
    "/settings/{rest:str}",
    "/objects",  # the address is signed and expires
    "/mlflow/{word:str}",  # health and version
    "/mlflow/{project:str}/{word:str}",
    "/mlflow/{api:str}/{version:str}/mlflow/server-info",
    "/mlflow/{project:str}/{api:str}/{version:str}/mlflow/server-info",
}


@pytest.fixture
async def house(ctx: Context, tmp_path: Path) -> AsyncIterator[Litestar]:
    settings = Settings(
        data_dir=tmp_path,
        objects=ObjectSettings(url=str(tmp_path / "objects")),
        security=SecuritySettings(secret_key=Secret("k" * 32)),
    )
    async with application(settings, ctx) as app:
        yield app


def test_only_what_must_be_is_public(house: Litestar) -> None:
    public = {
        path: handler.opt["public"]
        for _, path, handler in routes_of(house)
        if "public" in handler.opt
    }
    assert set(public) <= PUBLIC
    assert all(isinstance(why, str) and why for why in public.values())


async def test_no_route_of_any_door_answers_without_a_credential(house: Litestar) -> None:
    transport = httpx2.ASGITransport(app=house)
    guarded = {path for _, path, h in routes_of(house) if "public" not in h.opt}
    guarded -= {path for _, path, h in routes_of(house) if "public" in h.opt}
    assert len(guarded) > 20
    async with httpx2.AsyncClient(transport=transport, base_url="http://verderer.test") as client:
        for path in sorted(guarded):
            for method in METHODS:
                answer = await client.request(method, concrete(path))
                refused = answer.status_code in (401, 403, 405)
                to_login = (
                    answer.status_code in (302, 303) and "/login" in answer.headers["location"]
                )
                assert refused or to_login, f"{method} {path}: {answer.status_code}"


async def test_no_page_takes_a_token_and_no_program_a_cookie(house: Litestar, cast: Cast) -> None:
    transport = httpx2.ASGITransport(app=house)
    cookie = {"cookie": f"{SESSION_COOKIE}={cast.root.session}"}
    async with httpx2.AsyncClient(transport=transport, base_url="http://verderer.test") as client:
        for method, path, handler in routes_of(house):
            if "public" in handler.opt:
                continue
            headers = cast.root.bearer if handler.opt.get("session") else cookie
            answer = await client.request(method, concrete(path), headers=headers)
            refused = answer.status_code in (401, 403, 405)
            to_login = answer.status_code in (302, 303) and "/login" in answer.headers["location"]
            assert refused or to_login, f"{method} {path}: {answer.status_code}"


async def test_an_agent_reaches_its_own_routes_alone(house: Litestar, cast: Cast) -> None:
    transport = httpx2.ASGITransport(app=house)
    headers = {"authorization": f"Bearer {cast.agent}"}
    async with httpx2.AsyncClient(transport=transport, base_url="http://verderer.test") as client:
        for method, path, handler in routes_of(house):
            if "public" in handler.opt or handler.opt.get("session") or "/agent/" in path:
                continue
            answer = await client.request(method, concrete(path), headers=headers)
            assert answer.status_code in (403, 405), f"{method} {path}: {answer.status_code}"


async def test_an_unknown_address_of_the_api_is_a_problem_and_no_page(house: Litestar) -> None:
    transport = httpx2.ASGITransport(app=house)
    async with httpx2.AsyncClient(transport=transport, base_url="http://verderer.test") as client:
        for path in ("/api/v1/nowhere", "/api/v2/me", "/api"):
            answer = await client.get(path)
            assert answer.status_code == 404
            assert answer.headers["content-type"] == "application/problem+json", path
