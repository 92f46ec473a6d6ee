"""The real server on a real socket: what no client library would send."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest
import uvicorn
from litestar import Litestar

from tests.rig.people import Cast

PATH = b"/api/v1/me"


@pytest.fixture
async def port(app: Litestar) -> AsyncIterator[int]:
    config = uvicorn.Config(
        app, host="127.0.0.1", port=0, lifespan="off", log_config=None, ws="none"
    )
    server = uvicorn.Server(config)
    serving = asyncio.create_task(server.serve())
    async with asyncio.timeout(10):
        while not server.started:
            await asyncio.sleep(0.005)
    try:
        yield server.servers[0].sockets[0].getsockname()[1]
    finally:
        server.should_exit = True
        await serving


async def status_of(port: int, head: bytes, body: bytes = b"") -> int:
    """The status of the answer; 0 when the connection was closed without one."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    try:
        async with asyncio.timeout(5):
            writer.write(head + b"\r\n\r\n" + body)
            await writer.drain()
            line = await reader.readline()
            return int(line.split(b" ")[1]) if line else 0
    except (ConnectionError, BrokenPipeError):
        return 0
    finally:
        writer.close()


def get(*headers: bytes, host: bytes = b"127.0.0.1") -> bytes:
    return b"\r\n".join([b"GET " + PATH + b" HTTP/1.1", b"Host: " + host, *headers])


@pytest.mark.parametrize(
    ("head", "statuses"),
    [
        pytest.param(get(), {401}, id="nothing"),
        pytest.param(get(b"Authorization: Bearer nothing"), {401}, id="Bearer nothing"),
        pytest.param(get(b"Authorization:"), {401}, id="an empty header"),
        pytest.param(get(b"Authorization: Bearer a", b"Authorization: Bearer b"), {401}, id="two"),
        pytest.param(
            get(b"Authorization: Bearer " + b"a" * (1 << 20)), {0, 400, 401, 431}, id="a megabyte"
        ),
        pytest.param(get(b"Cookie: " + b"a=b; " * 10_000), {0, 400, 401, 431}, id="many cookies"),
        pytest.param(get(b"Authorization: Bearer \xff\xfe\x80"), {400, 401}, id="bytes"),
        pytest.param(get(host=b"evil.example.org"), {403}, id="a rebound name"),
        pytest.param(get(b"Host: evil.example.org"), {400, 403}, id="a second host"),
        pytest.param(b"GET " + PATH + b" HTTP/1.0", {401}, id="no host"),
        pytest.param(b"GET /api/v1/../v1/me HTTP/1.1\r\nHost: localhost", {401, 404}, id="dots"),
        pytest.param(b"GET //api//v1//me HTTP/1.1\r\nHost: localhost", {401, 404}, id="slashes"),
        pytest.param(b"GET /api/v1/%6de HTTP/1.1\r\nHost: localhost", {401}, id="encoded letters"),
        pytest.param(b"GET /api/v1/me%2f HTTP/1.1\r\nHost: localhost", {401, 404}, id="a slash"),
        pytest.param(b"\x16\x03\x01", {0, 400}, id="TLS"),
    ],
)
async def test_a_strange_request_is_refused_quickly(
    port: int, head: bytes, statuses: set[int]
) -> None:
    assert await status_of(port, head) in statuses


async def test_a_body_without_end_is_cut_off(port: int, cast: Cast) -> None:
    head = b"\r\n".join(
        [
            b"POST /api/v1/projects HTTP/1.1",
            b"Host: localhost",
            b"Authorization: Bearer " + cast.root.token.encode(),
            b"Content-Type: application/json",
            b"Transfer-Encoding: chunked",
        ]
    )
    chunk = b"10000\r\n" + b" " * 0x10000 + b"\r\n"
    assert await status_of(port, head, chunk * 80) in {0, 413}


async def test_a_body_that_says_it_is_huge_is_refused_before_it_comes(
    port: int, cast: Cast
) -> None:
    head = b"\r\n".join(
        [
            b"POST /api/v1/projects HTTP/1.1",
            b"Host: localhost",
            b"Authorization: Bearer " + cast.root.token.encode(),
            b"Content-Type: application/json",
            b"Content-Length: 1000000000",
        ]
    )
    assert await status_of(port, head) == 413
