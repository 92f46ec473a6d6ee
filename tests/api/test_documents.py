"""The OpenAPI document, the page to browse it, health checks, and headers of every answer."""

from __future__ import annotations

import hashlib
import re
from base64 import b64encode
from typing import Any

import httpx2
import pytest
from litestar import Litestar, asgi
from openapi_spec_validator import OpenAPIV31SpecValidator

from verderer.api.app import build_app
from verderer.api.docs import document
from verderer.api.gate import all_handlers
from verderer.core.access import Action
from verderer.store.database import Database
from verderer.usecases.context import Context


async def test_the_document_is_openapi_3_1_and_public(client: httpx2.AsyncClient) -> None:
    answer = await client.get("/api/v1/openapi.json")
    drawn = answer.json()
    assert drawn["openapi"].startswith("3.1")
    OpenAPIV31SpecValidator(drawn).validate()


def test_every_route_of_the_api_is_described_with_its_summary_and_its_action(
    app: Litestar,
) -> None:
    paths = document(app)["paths"]
    for path, handler in all_handlers(app):
        plain = re.sub(r"\{(\w+):\w+\}", r"{\1}", path)
        if not path.startswith("/api/v1/") or path.endswith("openapi.json"):
            continue
        for method in handler.http_methods:  # type: ignore[attr-defined]
            operation = paths[plain][method.lower()]
            assert operation["summary"], path
            assert "default" in operation["responses"]
            if "public" in handler.opt:
                assert operation["security"] == []
            else:
                assert operation["x-action"] == handler.opt["action"]


def test_names_in_the_document_are_short_and_unique(app: Litestar) -> None:
    drawn = document(app)
    assert "ProjectOutPage" in drawn["components"]["schemas"]
    operations = [o["operationId"] for item in drawn["paths"].values() for o in item.values()]
    assert len(set(operations)) == len(operations)
    assert "get_projects_name_members" in operations


def test_a_plain_asgi_route_brings_its_own_description(ctx: Context) -> None:
    described = {"post": {"operationId": "sync", "description": "Wait for orders.\n\nLong."}}

    async def sync(scope: Any, receive: Any, send: Any) -> None:
        return None

    route = asgi(
        "/api/v1/agent/sync",
        copy_scope=False,
        opt={"action": Action.AGENT_SYNC, "openapi": described},
    )(sync)
    app = build_app(context=ctx, objects=None, grants=None, extra_handlers=[route])  # type: ignore[arg-type]
    operation = document(app)["paths"]["/api/v1/agent/sync"]["post"]
    assert operation["summary"] == "Wait for orders."
    assert operation["x-action"] == "agent.sync"


async def test_the_page_runs_our_own_scripts_alone(client: httpx2.AsyncClient) -> None:
    answer = await client.get("/api/docs")
    assert answer.headers["content-type"].startswith("text/html")
    policy = answer.headers["content-security-policy"]
    assert "'unsafe-inline'" not in policy.partition("script-src")[2].partition(";")[0]
    sources = re.findall(r'(?:src|href)="([^"]+)"', answer.text)
    assert sources
    assert all(s.startswith(("/assets/vendor/", "/api/")) for s in sources)
    (script,) = re.findall(r"<script>(.*?)</script>", answer.text, re.DOTALL)
    digest = b64encode(hashlib.sha256(script.encode()).digest()).decode()
    assert f"'sha256-{digest}'" in policy


@pytest.mark.parametrize(
    "path", ["/healthz", "/api/v1/me", "/nowhere", "/api/docs", "/api/v1/openapi.json"]
)
async def test_every_answer_tells_browsers_what_not_to_do(
    client: httpx2.AsyncClient, path: str
) -> None:
    headers = (await client.get(path)).headers
    assert headers["x-content-type-options"] == "nosniff"
    assert headers["x-frame-options"] == "DENY"
    assert "frame-ancestors 'none'" in headers["content-security-policy"]
    assert "access-control-allow-origin" not in headers
    assert "server" not in headers


async def test_private_answers_are_not_cached(client: httpx2.AsyncClient) -> None:
    assert (await client.get("/api/v1/me")).headers["cache-control"] == "no-store"


async def test_the_process_is_alive_and_ready(client: httpx2.AsyncClient) -> None:
    assert (await client.get("/healthz")).json() == {"status": "ok"}
    answer = await client.get("/readyz")
    assert answer.status_code == 200
    assert answer.json() == {"ready": True, "parts": {"database": "ok", "schema": "ok"}}


async def test_not_ready_while_migrations_are_missing(
    client: httpx2.AsyncClient, database: Database
) -> None:
    take = """
        DELETE FROM schema_migrations
         WHERE number = (SELECT max(number) FROM schema_migrations WHERE name LIKE '%_pre_%')
     RETURNING *
    """
    async with database.transaction() as tx:
        row = await tx.fetchrow(take)
    assert row is not None
    try:
        answer = await client.get("/readyz")
    finally:
        async with database.transaction() as tx:
            await tx.execute("INSERT INTO schema_migrations VALUES ($1, $2, $3, $4)", *row)
    assert answer.status_code == 503
    assert row["name"] in answer.json()["parts"]["schema"]


async def test_not_ready_but_alive_without_a_database(
    client: httpx2.AsyncClient, database: Database
) -> None:
    await database.close()
    assert (await client.get("/healthz")).status_code == 200
    answer = await client.get("/readyz")
    assert answer.status_code == 503
    assert answer.json()["parts"]["database"] == "does not answer"
