"""The whole application over a seeded database, and somebody who is logged in."""

from __future__ import annotations

import re
import secrets
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime

import httpx2
import pytest
from litestar import Litestar

from tests.web.outputs import decorate
from tests.web.seed import PASSWORD, fill
from verderer.api.app import build_app
from verderer.core.model.ids import run_id_text
from verderer.objects.config import ObjectsConfig
from verderer.objects.grants import open_grants
from verderer.objects.store import ObjectStore, open_store
from verderer.store.database import Database
from verderer.store.wakeups import Wakeups
from verderer.usecases.context import Context
from verderer.usecases.people.passwords import hash_password
from verderer.usecases.submit_run import Submitter
from verderer.web.app import web_handlers

KEY = b"k" * 32
URL = "http://verderer.test"
_FORM = re.compile(r'name="form-token" content="([^"]+)"')

Client = httpx2.AsyncClient


@dataclass
class Site:
    """The application, its database, and the ids of the runs worth looking at."""

    app: Litestar
    context: Context
    objects: ObjectStore
    runs: dict[str, int]

    def run(self, name: str) -> str:
        return f"/runs/{run_id_text(self.runs[name])}"


def make_app(context: Context, objects: ObjectStore) -> Litestar:
    """What the server's process makes, without agents and tracking."""
    return build_app(
        context=context,
        objects=objects,
        grants=open_grants(objects, public_url="", instance_key=KEY, clock=lambda: 0.0),
        extra_handlers=web_handlers(
            context=context, submitter=Submitter(context), objects=objects, version="0.0.0"
        ),
    )


def make_context(database: Database, wakeups: Wakeups, public_url: str) -> Context:
    return Context(
        db=database,
        wakeups=wakeups,
        clock=lambda: datetime.now(UTC),
        chance=lambda: secrets.randbits(64),
        key=KEY,
        public_url=public_url,
    )


@pytest.fixture
async def bare(database: Database) -> AsyncIterator[Site]:
    """An application that knows nobody and nothing."""
    wakeups = Wakeups(database)
    await wakeups.start()
    context = make_context(database, wakeups, URL)
    objects = open_store(ObjectsConfig(url="memory://"))
    yield Site(make_app(context, objects), context, objects, {})
    await wakeups.stop()


@pytest.fixture
async def site(bare: Site) -> Site:
    """The same, seeded."""
    hashed = await hash_password(PASSWORD)
    async with bare.context.db.transaction() as tx:
        now = datetime.now(UTC)
        bare.runs.update(await fill(tx, now=now, password_hash=hashed, history=12))
        await decorate(tx, bare.objects, bare.runs, now=now)
    return bare


@asynccontextmanager
async def browser(site: Site) -> AsyncIterator[Client]:
    """Something that keeps cookies and follows redirects."""
    transport = httpx2.ASGITransport(app=site.app)
    async with httpx2.AsyncClient(
        transport=transport, base_url=URL, follow_redirects=True
    ) as client:
        yield client


async def make_admin(site: Site) -> None:
    """Somebody who may do everything, in an instance that is empty otherwise."""
    hashed = await hash_password(PASSWORD)
    async with site.context.db.transaction() as tx:
        await tx.execute(
            "INSERT INTO users (email, password_hash, platform_admin)"
            " VALUES ('admin@example.org', $1, true)",
            hashed,
        )


@pytest.fixture
async def anybody(site: Site) -> AsyncIterator[Client]:
    """A browser that is not logged in."""
    async with browser(site) as client:
        yield client


async def form_token(client: Client, path: str) -> str:
    """What the page at `path` puts into its forms."""
    page = await client.get(path)
    found = _FORM.search(page.text)
    assert found, page.text[:500]
    return found[1]


async def log_in(client: Client, email: str) -> None:
    token = await form_token(client, "/login")
    answer = await client.post(
        "/login",
        data={"_form": token, "email": email, "password": PASSWORD},
        follow_redirects=False,
    )
    assert answer.status_code == 303, answer.text


Login = Callable[[str], Awaitable[Client]]


@pytest.fixture
async def login(site: Site, anybody: Client) -> Login:
    """Log the browser in as somebody."""

    async def enter(email: str) -> Client:
        await log_in(anybody, email)
        return anybody

    return enter


@pytest.fixture
async def admin(login: Login) -> Client:
    return await login("admin@example.org")


@pytest.fixture
async def ana(login: Login) -> Client:
    """A member of `demo` and `vision`, not of `llm`."""
    return await login("ana@example.org")
