"""A served application and Debian's Chromium; without one these tests are skipped, loudly."""

from __future__ import annotations

import asyncio
import shutil
import socket
import threading
from collections.abc import Callable, Coroutine, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import pytest
import uvicorn
from playwright.sync_api import Browser, Page, sync_playwright

from tests.web.conftest import make_app, make_context
from tests.web.outputs import decorate
from tests.web.seed import PASSWORD, fill
from verderer.core.model.ids import run_id_text
from verderer.objects.config import ObjectsConfig
from verderer.objects.store import open_store
from verderer.store.database import Database
from verderer.store.wakeups import Wakeups
from verderer.usecases.context import Context
from verderer.usecases.people.passwords import hash_password

CHROMIUM = next((p for n in ("chromium", "chromium-browser") if (p := shutil.which(n))), None)
ARGUMENTS = [
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
]


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    why = "NO BROWSER: `apt-get install chromium fonts-noto-cjk` to test the console in one"
    for item in items:
        if item.path.parent.name == "browser":
            item.add_marker(pytest.mark.browser)
            item.add_marker(pytest.mark.timeout(180))
            if CHROMIUM is None:
                item.add_marker(pytest.mark.skip(reason=why))


@dataclass
class Served:
    """The application on a port, in a thread with an event loop of its own."""

    url: str
    runs: dict[str, int]
    context: Context
    loop: asyncio.AbstractEventLoop

    def run(self, name: str) -> str:
        return f"{self.url}/runs/{run_id_text(self.runs[name])}"

    def do(self, work: Callable[[Context], Coroutine[Any, Any, Any]]) -> Any:
        """Await something in the application's loop."""
        return asyncio.run_coroutine_threadsafe(work(self.context), self.loop).result(timeout=30)


@pytest.fixture(scope="module")
def served(migrated: tuple[str, Any]) -> Iterator[Served]:
    dsn, rows = migrated
    rows.clean()
    ready = threading.Event()
    made: list[Served] = []
    stop: list[uvicorn.Server] = []
    failed: list[BaseException] = []

    async def serve() -> None:
        database = await Database.open(dsn, application="browser")
        wakeups = Wakeups(database)
        await wakeups.start()
        with socket.socket() as listening:
            listening.bind(("127.0.0.1", 0))
            url = f"http://127.0.0.1:{listening.getsockname()[1]}"
            context = make_context(database, wakeups, url)
            objects = open_store(ObjectsConfig(url="memory://"))
            hashed = await hash_password(PASSWORD)
            async with database.transaction() as tx:
                now = datetime.now(UTC)
                runs = await fill(tx, now=now, password_hash=hashed, history=70)
                await decorate(tx, objects, runs, now=now)
                # Nobody beats for them here.
                await tx.execute(
                    "UPDATE heartbeats SET seen_at = now() + interval '1 hour'"
                    " WHERE seen_at > now() - interval '1 minute'"
                )
            config = uvicorn.Config(
                make_app(context, objects), log_config=None, timeout_graceful_shutdown=1
            )
            server = uvicorn.Server(config)
            stop.append(server)
            made.append(Served(url, runs, context, asyncio.get_running_loop()))
            ready.set()
            await server.serve(sockets=[listening])
        await wakeups.stop()
        await database.close()

    def body() -> None:
        try:
            asyncio.run(serve())
        except BaseException as e:  # noqa: BLE001 - it is told by the fixture
            failed.append(e)
        finally:
            ready.set()

    thread = threading.Thread(target=body, name="served")
    thread.start()
    ready.wait(timeout=60)
    assert made, failed
    yield made[0]
    stop[0].should_exit = True
    thread.join(timeout=20)
    assert not failed, failed


@pytest.fixture(scope="module")
def chromium() -> Iterator[Browser]:
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=CHROMIUM, chromium_sandbox=False, args=ARGUMENTS
        )
        yield browser
        browser.close()


@dataclass(frozen=True)
class Look:
    """How somebody looks at the console."""

    width: int = 1440
    height: int = 900
    scheme: str = "light"
    locale: str = "en-GB"


Open = Callable[..., Page]


@pytest.fixture
def open_page(served: Served, chromium: Browser) -> Iterator[Open]:
    """A page of somebody who is logged in; any complaint of the browser fails the test."""
    complaints: list[str] = []
    contexts = []

    def open_as(email: str = "admin@example.org", look: Look | None = None) -> Page:
        look = look or Look()
        context = chromium.new_context(
            viewport={"width": look.width, "height": look.height},
            color_scheme=look.scheme,  # type: ignore[arg-type]
            locale=look.locale,
            base_url=served.url,
            permissions=["clipboard-read", "clipboard-write"],
        )
        contexts.append(context)
        page = context.new_page()
        page.set_default_timeout(15_000)
        page.on("console", lambda m: complaints.append(m.text) if m.type == "error" else None)
        page.on("pageerror", lambda e: complaints.append(str(e)))
        page.goto("/login")
        page.fill("#email", email)
        page.fill("#password", PASSWORD)
        page.click(".sheet-login .primary")
        page.wait_for_url(served.url + "/")
        return page

    yield open_as
    for context in contexts:
        context.close()
    assert complaints == []
