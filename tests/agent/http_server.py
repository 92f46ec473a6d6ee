"""A small HTTP/1.1 server whose every misbehaviour is chosen by the test."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Request:
    method: str
    path: str
    headers: dict[str, str]
    body: bytes


@dataclass
class Response:
    status: int = 200
    body: bytes = b""
    headers: dict[str, str] = field(default_factory=dict)
    lose: bool = False
    """Close the connection instead of answering."""
    bytes_per_s: float | None = None
    """Dribble the body."""
    claim_length: int | None = None
    """Say this content length instead of the true one, then close."""


Handler = Callable[[Request], Awaitable[Response]]


class HttpServer:
    """Serves `handle` on a port of 127.0.0.1 that stays the same over `go_away` and `come_back`."""

    def __init__(self, handle: Handler) -> None:
        self._handle = handle
        self._server: asyncio.Server | None = None
        self._connections: set[asyncio.Task[None]] = set()
        self.port = 0
        self.requests = 0

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    async def come_back(self) -> None:
        self._server = await asyncio.start_server(self._accept, "127.0.0.1", self.port)
        self.port = self._server.sockets[0].getsockname()[1]

    async def go_away(self) -> None:
        if self._server is not None:
            self._server.close()
        for task in list(self._connections):
            task.cancel()
        await asyncio.gather(*self._connections, return_exceptions=True)
        self._server = None

    async def __aenter__(self) -> HttpServer:
        await self.come_back()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.go_away()

    def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.create_task(self._connection(reader, writer))
        self._connections.add(task)
        task.add_done_callback(self._connections.discard)

    async def _connection(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while (request := await _read(reader)) is not None:
                self.requests += 1
                response = await self._handle(request)
                if response.lose:
                    return
                await _write(writer, response)
                if response.claim_length is not None:
                    return
        except (ConnectionError, asyncio.IncompleteReadError):
            pass
        finally:
            writer.close()
            with contextlib.suppress(ConnectionError):
                await writer.wait_closed()


async def _read(reader: asyncio.StreamReader) -> Request | None:
    head = await reader.readuntil(b"\r\n\r\n")
    first, *lines = head.decode("latin-1").split("\r\n")
    method, path, _ = first.split(" ", 2)
    pairs = (line.split(":", 1) for line in lines if line)
    headers = {name.lower(): value.strip() for name, value in pairs}
    length = int(headers.get("content-length", "0"))
    assert "transfer-encoding" not in headers, "bodies come with their length"
    body = await reader.readexactly(length) if length else b""
    return Request(method, path, headers, body)


async def _write(writer: asyncio.StreamWriter, response: Response) -> None:
    length = len(response.body) if response.claim_length is None else response.claim_length
    headers = {"content-length": str(length), **response.headers}
    head = f"HTTP/1.1 {response.status} X\r\n"
    head += "".join(f"{name}: {value}\r\n" for name, value in headers.items())
    writer.write(head.encode("latin-1") + b"\r\n")
    if response.bytes_per_s is None:
        writer.write(response.body)
    else:
        for at in range(len(response.body)):
            writer.write(response.body[at : at + 1])
            await writer.drain()
            await asyncio.sleep(1 / response.bytes_per_s)
    await writer.drain()
