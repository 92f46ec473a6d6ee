"""Server-sent events of a run, as documents; a lost connection is opened again."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncGenerator, AsyncIterator
from typing import TYPE_CHECKING

from verderer.cli.commands.remote import API
from verderer.core.errors import Fault

if TYPE_CHECKING:
    from verderer.wire.client import ApiClient

_QUIET_S = 60.0
"""The server says something at least every 15 seconds."""
_TRIES = 60


async def events(client: ApiClient, run: str) -> AsyncGenerator[tuple[str, bytes], None]:
    """Name and data of each event, until the run is over.

    Two are made here: `away` when the server stopped answering, with the reason, and `back`.

    Raises:
        Fault: the server has been away for about two minutes.
        Refusal: the run may not be read (any more).
    """
    failures = 0
    while True:
        try:
            stream = client.stream(
                f"{API}/runs/{run}/watch", accept="text/event-stream", quiet_s=_QUIET_S
            )
            # Whoever stops in the middle of a stream closes it, or it complains when it is found.
            async with contextlib.aclosing(stream), contextlib.aclosing(_parsed(stream)) as parsed:
                async for event in parsed:
                    if failures:
                        failures = 0
                        yield "back", b""
                    yield event
                    if event[0] == "end":
                        return
            raise Fault("the server ended the connection")
        except Fault as e:
            failures += 1
            if failures > _TRIES:
                raise
            if failures == 2:  # once is a restart that nobody needs to hear of
                yield "away", e.message.encode()
            await asyncio.sleep(min(2.0, 0.2 * failures))


async def _parsed(stream: AsyncIterator[bytes]) -> AsyncGenerator[tuple[str, bytes], None]:
    held = b""
    async for part in stream:
        held += part
        *blocks, held = held.split(b"\n\n")
        for block in blocks:
            name, data = b"", b""
            for line in block.split(b"\n"):
                if line.startswith(b"event: "):
                    name = line[7:]
                elif line.startswith(b"data: "):
                    data += line[6:]
            if name:
                yield name.decode("utf-8", "replace"), data
