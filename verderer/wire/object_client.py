"""Bytes to and from the addresses that a grant names: our own object routes or presigned S3."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Self
from urllib.parse import urljoin

import httpx2

from verderer.core.errors import Fault
from verderer.wire.transport import Ask, Transport


class ObjectClient:
    """Reads and writes objects by granted address.

    The agent's credential is never sent here: the address itself carries the right, and may lead
    to another machine than the control plane's.
    """

    def __init__(
        self, server_url: str, *, ca_file: str | None = None, timeout_s: float = 60.0
    ) -> None:
        self._base = server_url.rstrip("/") + "/"
        self._transport = Transport(server_url, ca_file=ca_file, connections=32)
        self._timeout_s = timeout_s

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()

    async def aclose(self) -> None:
        await self._transport.aclose()

    async def put(self, url: str, content: bytes | AsyncIterator[bytes], *, size: int) -> None:
        """Store `size` bytes, replacing what was there. Streams have no overall time limit.

        Raises:
            NotAllowed, NotAuthenticated: the address has expired or was made for something else.
            Refusal: the store will not take it.
            Fault: the store is away; trying again may help.
        """
        # An exact length: object stores refuse bodies sent in chunks of unknown number.
        headers = {"content-length": str(size), "content-type": "application/octet-stream"}
        ask = Ask(
            method="PUT",
            url=urljoin(self._base, url),
            headers=headers,
            content=content if isinstance(content, bytes) else _exactly(content, size),
            timeout_s=self._timeout_s,
        )
        if isinstance(content, bytes):
            await self._transport.send(ask)
            return
        async with self._transport.open(ask) as response:
            await response.aread()

    @asynccontextmanager
    async def get(self, url: str) -> AsyncIterator[AsyncIterator[bytes]]:
        """Parts of an object's content as they come; `timeout_s` bounds the wait for each.

        Raises:
            NotFound: there is no such object.
            NotAllowed, NotAuthenticated: the address has expired.
            Fault: the store is away or the connection broke.
        """
        ask = Ask(method="GET", url=urljoin(self._base, url), timeout_s=self._timeout_s)
        async with self._transport.open(ask) as response:
            yield _parts(response)


async def _exactly(content: AsyncIterator[bytes], size: int) -> AsyncIterator[bytes]:
    """The same bytes; a Fault when they are not as many as were announced."""
    sent = 0
    async for part in content:
        sent += len(part)
        if sent > size:
            raise Fault(f"more than the {size} bytes announced: it grew while it was sent")
        yield part
    if sent < size:
        raise Fault(f"{sent} bytes instead of the {size} announced: it shrank while it was sent")


async def _parts(response: httpx2.Response) -> AsyncIterator[bytes]:
    async for part in response.aiter_bytes():
        yield part
