"""A real server on a thread of its own, for commands that run in this process or another."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

import httpx2
import uvicorn

from tests.api.platform import Platform, build
from tests.rig.people import make_cast
from tests.usecases.world import World
from verderer.objects.config import ObjectsConfig
from verderer.objects.store import open_store
from verderer.store.database import Database

T = TypeVar("T")


class Server:
    """The platform of the API's tests behind a socket; `do` runs something beside it."""

    def __init__(self, dsn: str) -> None:
        self._dsn = dsn
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="server", daemon=True)
        self._thread.start()
        self._uvicorn: uvicorn.Server | None = None
        self._serving: asyncio.Task[None] | None = None
        self.platform: Platform = self.do(self._open())
        self.url = f"http://127.0.0.1:{self.do(self._serve(0))}"

    def do(self, work: Coroutine[Any, Any, T]) -> T:
        """Run something on the server's loop and wait for it."""
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(timeout=60)

    def submit(self, text: str, **more: Any) -> str:
        return self.do(self.platform.submit(text, **more))

    def start(self) -> list[Any]:
        return self.do(self.platform.start())

    def later(self, seconds: float, work: Callable[[], Coroutine[Any, Any, object]]) -> None:
        """Begin `work` on the server's loop after a while, whatever this thread does."""
        delayed = _after(seconds, work)
        asyncio.run_coroutine_threadsafe(delayed, self._loop)

    def restart(self, away_s: float) -> None:
        """Be away for a while and come back at the same address."""
        port = int(self.url.rpartition(":")[2])
        self.do(self._stop_serving())
        self.do(asyncio.sleep(away_s))
        self.do(self._serve(port))

    def close(self) -> None:
        self.do(self._close())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(timeout=10)
        self._loop.close()

    async def _open(self) -> Platform:
        database = await Database.open(self._dsn, application="tests")
        world = await World.make(database)
        cast = await make_cast(world.ctx)
        objects = open_store(ObjectsConfig(url="memory://"))
        app = build(world.ctx, objects, world.submitter)
        transport = httpx2.ASGITransport(app=app)
        client = httpx2.AsyncClient(transport=transport, base_url="http://verderer.test")
        return Platform(world=world, objects=objects, cast=cast, client=client, app=app)

    async def _serve(self, port: int) -> int:
        config = uvicorn.Config(
            self.platform.app,
            host="127.0.0.1",
            port=port,
            lifespan="off",
            log_config=None,
            ws="none",
            timeout_graceful_shutdown=1,
        )
        self._uvicorn = uvicorn.Server(config)
        self._uvicorn.capture_signals = _no_signals  # type: ignore[method-assign]
        self._serving = asyncio.create_task(self._uvicorn.serve())
        async with asyncio.timeout(10):
            while not self._uvicorn.started:
                await asyncio.sleep(0.005)
        return int(self._uvicorn.servers[0].sockets[0].getsockname()[1])

    async def _stop_serving(self) -> None:
        assert self._uvicorn is not None
        assert self._serving is not None
        self._uvicorn.should_exit = True
        await self._serving

    async def _close(self) -> None:
        await self._stop_serving()
        await self.platform.client.aclose()
        await self.platform.world.ctx.db.close()


async def _after(seconds: float, work: Callable[[], Coroutine[Any, Any, object]]) -> None:
    await asyncio.sleep(seconds)
    await work()


@contextmanager
def _no_signals() -> Iterator[None]:
    yield
