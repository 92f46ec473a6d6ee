"""Feeds a stream of unknown length to the client library, one part at a time."""

from __future__ import annotations

from collections.abc import AsyncIterator

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
