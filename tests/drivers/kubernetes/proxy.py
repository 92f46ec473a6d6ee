"""A proxy before the API server that fails on demand; plain HTTP/1.1 towards its client."""

from __future__ import annotations

import asyncio
import contextlib
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass
from typing import Final

import httpx2

from testbeds.kubernetes.cluster import Cluster

_HOP: Final = {"connection", "keep-alive", "transfer-encoding", "content-length", "host"}


@dataclass(frozen=True, slots=True)
class Asked:
    """A request, for a rule to look at."""

    method: str
    path: str
    query: str

    @property
    def is_watch(self) -> bool:
        return "watch=true" in self.query


@dataclass(frozen=True, slots=True)
class Answer:
    """What is answered instead of the API server."""

    code: int
    body: bytes = b""
    headers: tuple[tuple[str, str], ...] = ()
    stays_open: bool = False
    """Never ends, and says nothing more."""


class LoseAnswer:
    """Pass the request on and cut the connection instead of answering."""


class Hang:
    """Neither pass it on nor answer."""


Fault = Answer | LoseAnswer | Hang
Rule = Callable[[Asked], Fault | None]


class Proxy:
    """Between `async with`; `rule` decides on each request, `cut` ends all open connections."""

    def __init__(self, cluster: Cluster) -> None:
        self.rule: Rule = lambda asked: None
        self.asked: list[Asked] = []
        self._cluster = cluster
        self._open: set[asyncio.Task[None]] = set()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._port}"

    async def __aenter__(self) -> Proxy:
        context = ssl.create_default_context(cafile=str(self._cluster.ca_file))
        limits = httpx2.Limits(max_connections=None)
        self._upstream = httpx2.AsyncClient(
            base_url=self._cluster.url, verify=context, timeout=60, limits=limits, trust_env=False
        )
        self._server = await asyncio.start_server(self._accept, "127.0.0.1", 0)
        self._port = self._server.sockets[0].getsockname()[1]
        return self

    async def __aexit__(self, *_: object) -> None:
        self._server.close()
        await self.cut()
        await self._upstream.aclose()
        await asyncio.sleep(0.05)

    def fail(self, fault: Fault, matches: Callable[[Asked], bool], *, times: int = 1) -> None:
        """Answer the next `times` requests that match with `fault`."""
        left = [times]

        def rule(asked: Asked) -> Fault | None:
            if left[0] and matches(asked):
                left[0] -= 1
                return fault
            return None

        self.rule = rule

    async def cut(self) -> None:
        """Break every connection."""
        for task in self._open:
            task.cancel()
        await asyncio.gather(*self._open, return_exceptions=True)

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.ensure_future(self._serve(reader, writer))
        self._open.add(task)
        task.add_done_callback(self._open.discard)
        with contextlib.suppress(asyncio.CancelledError, OSError, httpx2.HTTPError):
            await task
        writer.transport.abort()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while head := await _read_head(reader):
            first, *fields = head.decode("latin-1").split("\r\n")
            method, target, _ = first.split(" ", 2)
            headers = dict(line.split(": ", 1) for line in fields if line)
            length = int(next((v for k, v in headers.items() if k.lower() == "content-length"), 0))
            body = await reader.readexactly(length)
            path, _, query = target.partition("?")
            asked = Asked(method, path, query)
            self.asked.append(asked)
            fault = self.rule(asked)
            kept = {k: v for k, v in headers.items() if k.lower() not in _HOP}
            if isinstance(fault, Answer):
                await _answer(writer, fault)
            elif isinstance(fault, Hang):
                await asyncio.sleep(3600)
            elif isinstance(fault, LoseAnswer):
                await self._upstream.request(method, target, headers=kept, content=body)
                return
            else:
                await self._pass(writer, method, target, kept, body)

    async def _pass(
        self,
        writer: asyncio.StreamWriter,
        method: str,
        target: str,
        headers: dict[str, str],
        body: bytes,
    ) -> None:
        stream = self._upstream.stream(method, target, headers=headers, content=body)
        async with stream as answer:
            given = [(k, v) for k, v in answer.headers.items() if k.lower() not in _HOP]
            given = [(k, v) for k, v in given if k.lower() != "content-encoding"]
            await _chunks(writer, answer.status_code, given, answer.aiter_bytes())


async def _read_head(reader: asyncio.StreamReader) -> bytes:
    try:
        return (await reader.readuntil(b"\r\n\r\n"))[:-4]
    except asyncio.IncompleteReadError:
        return b""


async def _answer(writer: asyncio.StreamWriter, answer: Answer) -> None:
    headers = [("Content-Type", "application/json"), *answer.headers]

    async def body() -> AsyncIterator[bytes]:
        if answer.body:
            yield answer.body
        if answer.stays_open:
            await asyncio.sleep(3600)

    await _chunks(writer, answer.code, headers, body())


async def _chunks(
    writer: asyncio.StreamWriter,
    code: int,
    headers: list[tuple[str, str]],
    body: AsyncIterator[bytes],
) -> None:
    lines = [f"HTTP/1.1 {code} X", "Transfer-Encoding: chunked"]
    lines += [f"{name}: {value}" for name, value in headers]
    writer.write(("\r\n".join(lines) + "\r\n\r\n").encode("latin-1"))
    drain: Callable[[], Awaitable[None]] = writer.drain
    async for data in body:
        writer.write(f"{len(data):x}\r\n".encode() + data + b"\r\n")
        await drain()
    writer.write(b"0\r\n\r\n")
    await drain()
