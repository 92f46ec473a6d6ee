"""A frugal HTTP/1.1 client: kept connections, requests encoded beforehand, answers cut by length.

It shares the machine with what it measures, so it does nothing that is not needed.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import cast

_END = b"\r\n\r\n"


class Connection(asyncio.Protocol):
    """One request at a time."""

    def __init__(self) -> None:
        self._buffer = bytearray()
        self._waiting: asyncio.Future[tuple[int, bytes]] | None = None
        self._transport: asyncio.Transport | None = None
        self._port = 0

    @classmethod
    async def open(cls, port: int) -> Connection:
        made = cls()
        made._port = port
        await made._connect()
        return made

    async def _connect(self) -> None:
        loop = asyncio.get_running_loop()
        await loop.create_connection(lambda: self, "127.0.0.1", self._port)

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        # uvloop's transports are none of asyncio's classes.
        self._transport = cast("asyncio.Transport", transport)

    async def exchange(self, request: bytes) -> tuple[int, bytes]:
        """Send, and give the status and the body of the answer."""
        if self._transport is None or self._transport.is_closing():
            await self._connect()  # idle for long, the server had hung up
        assert self._transport is not None
        self._waiting = asyncio.get_running_loop().create_future()
        self._transport.write(request)
        try:
            return await self._waiting
        finally:
            self._waiting = None

    def data_received(self, data: bytes) -> None:
        self._buffer += data
        head = self._buffer.find(_END)
        if head < 0 or self._waiting is None:
            return
        length = _length(bytes(self._buffer[:head]))
        begin = head + len(_END)
        if len(self._buffer) < begin + length:
            return
        status = int(self._buffer[9:12])
        body = bytes(self._buffer[begin : begin + length])
        self._buffer.clear()
        if not self._waiting.done():
            self._waiting.set_result((status, body))

    def connection_lost(self, exc: Exception | None) -> None:
        self._transport = None
        self._buffer.clear()
        if self._waiting is not None and not self._waiting.done():
            self._waiting.set_exception(exc or ConnectionResetError("the server closed"))

    def close(self) -> None:
        if self._transport is not None:
            self._transport.close()


def _length(head: bytes) -> int:
    lower = head.lower()
    at = lower.find(b"content-length:")
    if at < 0:
        if b"transfer-encoding" in lower:
            raise ValueError("an answer without a length")
        return 0
    return int(lower[at + 15 :].split(b"\r\n", 1)[0])


def request(
    method: str, path: str, *, token: str = "", session: str = "", body: bytes = b"", key: str = ""
) -> bytes:
    """The bytes of a request."""
    lines = [f"{method} {path} HTTP/1.1", "host: 127.0.0.1"]
    if token:
        lines.append(f"authorization: Bearer {token}")
    if session:
        lines.append(f"cookie: verderer_session={session}")
    if key:
        lines.append(f"idempotency-key: {key}")
    if body:
        lines += ["content-type: application/json", f"content-length: {len(body)}"]
    return "\r\n".join(lines).encode() + _END + body


@dataclass(slots=True)
class Served:
    """What became of many requests."""

    seconds: list[float] = field(default_factory=list)
    failures: list[str] = field(default_factory=list)
    wall_s: float = 0.0


async def drive(
    port: int, make: Callable[[int], bytes], *, clients: int, for_s: float = 0.0, most: int = 0
) -> Served:
    """`clients` that each send the next request once the last was answered.

    They stop after `for_s` seconds or `most` requests, whichever is given.
    """
    served = Served()
    connections = [await Connection.open(port) for _ in range(clients)]
    sent = 0
    began = time.perf_counter()
    until = began + for_s if for_s else float("inf")

    async def client(connection: Connection) -> None:
        nonlocal sent
        while time.perf_counter() < until and not (most and sent >= most):
            sent += 1
            asked = make(sent)
            at = time.perf_counter()
            status, body = await connection.exchange(asked)
            served.seconds.append(time.perf_counter() - at)
            if status >= 300:
                served.failures.append(f"{status} {body[:200]!r}")
                if len(served.failures) > 20:
                    raise RuntimeError(f"too many failures: {served.failures[:3]}")

    try:
        await asyncio.gather(*(client(one) for one in connections))
    finally:
        served.wall_s = time.perf_counter() - began
        for one in connections:
            one.close()
    return served
