"""Asks a process whether it is ready, in the way that its role says."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from urllib.parse import urlsplit

_ASK_AGAIN_S = 0.03
_ANSWER_WITHIN_S = 2.0


async def answers(url: str) -> bool:
    """Whether a GET of `url` is answered with 200: one connection, no client library."""
    target = urlsplit(url)
    host, port = target.hostname or "127.0.0.1", target.port or 80
    try:
        async with asyncio.timeout(_ANSWER_WITHIN_S):
            reader, writer = await asyncio.open_connection(host, port)
            try:
                head = f"GET {target.path or '/'} HTTP/1.1\r\nHost: {host}:{port}\r\n"
                writer.write(f"{head}Connection: close\r\n\r\n".encode("ascii"))
                await writer.drain()
                status = await reader.readline()
            finally:
                writer.close()
    except (OSError, TimeoutError, ValueError):
        return False
    return status.split()[1:2] == [b"200"]


async def until(asked: Callable[[], Awaitable[bool]]) -> None:
    """Ask again and again until the answer is yes. The caller sets the time limit."""
    while not await asked():  # noqa: ASYNC110 what is waited for is another process
        await asyncio.sleep(_ASK_AGAIN_S)
