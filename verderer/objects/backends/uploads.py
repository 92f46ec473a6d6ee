"""Writes objects through the client library: in one request, in parts, or under a condition."""

from __future__ import annotations

import secrets
from collections.abc import AsyncIterator
from contextlib import suppress

import obstore

from verderer.core.errors import VerdererError
from verderer.objects.backends.clients import Client
from verderer.objects.backends.faults import Translator
from verderer.objects.keys import tmp_key

PART_BYTES = 8 * 1024 * 1024
"""Parts of this size are held in memory, `PART_CONCURRENCY` of them at once."""
PART_CONCURRENCY = 4
_MAX_PARTS = 10_000
"""S3's limit."""


def part_size(expected: int | None) -> int:
    """Bytes a part: as small as lets `expected` bytes (unknown: 80 GB) fit in the parts of S3."""
    if expected is None:
        return PART_BYTES
    return max(PART_BYTES, -(-expected // (_MAX_PARTS - 1)))


class Body:
    """An async iterator of chunks that can be looked into before it is sent.

    `error` is what the source itself raised, so that a client that hung up is never reported as a
    failure of the store; `taken` counts the bytes handed on so far.
    """

    def __init__(self, source: AsyncIterator[bytes]) -> None:
        self._source = source
        self._held: list[bytes] = []
        self._ended = False
        self.error: Exception | None = None
        self.taken = 0

    async def peek(self, size: int) -> bytes | None:
        """The whole body when it is at most `size` bytes, else None with nothing lost."""
        held = 0
        async for chunk in self:
            self._held.append(chunk)
            held += len(chunk)
            if held > size:
                self.taken = 0
                return None
        return b"".join(self._held)

    def __aiter__(self) -> AsyncIterator[bytes]:
        return self

    async def __anext__(self) -> bytes:
        chunk = await self._next()
        self.taken += len(chunk)
        return chunk

    async def _next(self) -> bytes:
        try:
            while not (chunk := await anext(self._source)):
                pass
        except StopAsyncIteration:
            raise
        except Exception as error:
            self.error = error
            raise
        return bytes(chunk)

    async def replay(self) -> AsyncIterator[bytes]:
        """What was looked at, then the rest; call once, after `peek` returned None."""
        held, self._held = self._held, []
        while held:
            chunk = held.pop(0)
            self.taken += len(chunk)
            yield chunk
        async for chunk in self:
            yield chunk


class Uploader:
    """Writes whole objects; methods give the number of bytes and the e-tag."""

    def __init__(self, client: Client, translator: Translator) -> None:
        self._client = client
        self._translator = translator

    async def put_bytes(self, key: str, body: bytes, *, create_only: bool) -> tuple[int, str]:
        """Write bytes that are in memory."""
        with self._translator.over("write", key):
            result = await obstore.put_async(
                self._client,
                key,
                body,
                mode="create" if create_only else "overwrite",
                chunk_size=PART_BYTES,
                max_concurrency=PART_CONCURRENCY,
            )
        return len(body), result["e_tag"] or ""

    async def put_stream(
        self, key: str, body: Body, *, create_only: bool, size: int | None
    ) -> tuple[int, str]:
        """Write a stream, holding a few parts of it in memory."""
        # Most streams are small: one request instead of the three of a multipart upload.
        whole = await body.peek(PART_BYTES)
        if whole is not None:
            return await self.put_bytes(key, whole, create_only=create_only)
        if not create_only:
            return await self._put_parts(key, body, size)
        # Parts cannot be put under a condition, a rename can.
        staged = tmp_key("staged", secrets.token_hex(16))
        await self._put_parts(staged, body, size)
        try:
            with self._translator.over("write", key):
                await obstore.rename_async(self._client, staged, key, overwrite=False)
                meta = await obstore.head_async(self._client, key)
        except VerdererError:
            with suppress(VerdererError), self._translator.over("delete", staged):
                await obstore.delete_async(self._client, staged)
            raise
        return body.taken, meta["e_tag"] or ""

    async def _put_parts(self, key: str, body: Body, size: int | None) -> tuple[int, str]:
        with self._translator.over("write", key):
            result = await obstore.put_async(
                self._client,
                key,
                body.replay(),
                use_multipart=True,
                chunk_size=part_size(size),
                max_concurrency=PART_CONCURRENCY,
            )
        return body.taken, result["e_tag"] or ""
