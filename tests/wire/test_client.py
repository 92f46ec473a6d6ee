"""Both clients against a server that answers as the test likes."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from typing import Any

import msgspec
import pytest

from tests.agent.http_server import HttpServer, Request, Response
from verderer.core.errors import Conflict, Fault, Invalid, NotFound, TooLarge
from verderer.wire.agent import SyncRequest, SyncResponse
from verderer.wire.client import AgentClient, ApiClient, Retries
from verderer.wire.object_client import ObjectClient
from verderer.wire.transport import Transport

QUICK = Retries(attempts=4, first_s=0.001, longest_s=0.01)


class Server:
    def __init__(self) -> None:
        self.answers: list[Response] = []
        self.requests: list[Request] = []
        self.http = HttpServer(self._handle)

    async def _handle(self, request: Request) -> Response:
        self.requests.append(request)
        return self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]

    def will(self, *answers: Response) -> None:
        self.answers = list(answers)

    @property
    def url(self) -> str:
        return self.http.url


@pytest.fixture
async def server() -> AsyncIterator[Server]:
    server = Server()
    async with server.http:
        yield server


def ok(document: Any) -> Response:
    return Response(200, msgspec.json.encode(document), {"content-type": "application/json"})


def refused(status: int, code: str) -> Response:
    body = msgspec.json.encode({"code": code, "detail": "no"})
    return Response(status, body, {"content-type": "application/problem+json"})


async def test_a_document_is_read_with_token_query_and_type(server: Server) -> None:
    server.will(ok({"a": 1}))
    async with ApiClient(server.url + "/", token="secret") as client:
        assert await client.get("/api/v1/x", dict[str, int], project="p q", after=None) == {"a": 1}
    (request,) = server.requests
    assert request.path == "/api/v1/x?project=p+q"
    assert request.headers["authorization"] == "Bearer secret"


async def test_reads_are_tried_again_when_the_server_is_away(server: Server) -> None:
    server.will(Response(503), Response(lose=True), refused(429, "too_many"), ok([1]))
    async with ApiClient(server.url, retries=QUICK) as client:
        assert await client.get("/x", list[int]) == [1]
    assert len(server.requests) == 4


async def test_a_post_is_sent_once_unless_it_has_a_key(server: Server) -> None:
    server.will(Response(503))
    async with ApiClient(server.url, retries=QUICK) as client:
        with pytest.raises(Fault):
            await client.post("/x", {}, dict)
        assert len(server.requests) == 1
        with pytest.raises(Fault):
            await client.post("/x", {}, dict, idempotency_key="k1")
    assert len(server.requests) == 5
    assert {request.headers["idempotency-key"] for request in server.requests[1:]} == {"k1"}


async def test_a_refusal_is_not_tried_again(server: Server) -> None:
    server.will(refused(404, "no_such_run"))
    async with ApiClient(server.url, retries=QUICK) as client:
        with pytest.raises(NotFound) as caught:
            await client.get("/x", dict)
    assert caught.value.code == "no_such_run"
    assert len(server.requests) == 1


async def test_an_answer_of_another_shape_is_a_fault(server: Server) -> None:
    server.will(ok({"a": "text"}))
    async with ApiClient(server.url) as client:
        with pytest.raises(Fault, match="not what was expected"):
            await client.get("/x", dict[str, int])


async def test_an_answer_without_a_body_is_none(server: Server) -> None:
    server.will(Response(204))
    async with ApiClient(server.url) as client:
        assert await client.post("/x", {}, type(None)) is None
        await client.delete("/x")


async def test_bytes_are_sent_as_they_are(server: Server) -> None:
    server.will(ok({}))
    async with ApiClient(server.url) as client:
        await client.exchange("POST", "/x", body=b"a: 1", content_type="application/yaml")
    assert (server.requests[0].body, server.requests[0].headers["content-type"]) == (
        b"a: 1",
        "application/yaml",
    )


async def test_a_stream_gives_its_parts_as_they_come(server: Server) -> None:
    server.will(Response(200, b"abc", bytes_per_s=20))
    async with ApiClient(server.url) as client:
        parts = [part async for part in client.stream("/x")]
    assert b"".join(parts) == b"abc"
    assert len(parts) > 1


async def test_nobody_listening_is_a_fault_that_says_what_to_check(server: Server) -> None:
    await server.http.go_away()
    async with ApiClient(server.url, retries=Retries(attempts=1)) as client:
        with pytest.raises(Fault, match="cannot be reached") as caught:
            await client.get("/x", dict)
    assert "server runs" in caught.value.hint


async def test_a_server_of_one_byte_a_second_is_given_up_in_time(server: Server) -> None:
    server.will(Response(200, b"x" * 100, bytes_per_s=10))
    async with AgentClient(server.url, "c", timeout_s=0.3) as client:
        began = time.monotonic()
        with pytest.raises(Fault, match=r"no answer from .* in 0.3 s"):
            await client.sync(SyncRequest(epoch=1))
        assert time.monotonic() - began < 2


async def test_a_wait_of_the_long_poll_comes_on_top_of_the_time_limit(server: Server) -> None:
    document = msgspec.msgpack.encode(SyncResponse(epoch=1, revision=2))

    async def slow(_request: Request) -> Response:
        await asyncio.sleep(0.4)
        return Response(200, document, {"content-type": "application/msgpack"})

    server.http._handle = slow
    async with AgentClient(server.url, "c", timeout_s=0.2) as client:
        assert (await client.sync(SyncRequest(epoch=1, wait_s=0.5))).revision == 2


async def test_an_answer_longer_than_its_limit_is_refused_while_it_comes(server: Server) -> None:
    server.will(Response(200, b"x" * (5 * 1024 * 1024)))
    async with AgentClient(server.url, "c") as client:
        with pytest.raises(TooLarge):
            await client.hello(None)  # type: ignore[arg-type]


async def test_an_answer_cut_short_is_a_fault(server: Server) -> None:
    server.will(Response(200, b"abc", claim_length=10))
    async with AgentClient(server.url, "c") as client:
        with pytest.raises(Fault):
            await client.sync(SyncRequest(epoch=1))


async def test_garbage_is_a_fault(server: Server) -> None:
    server.will(Response(200, b"\xc1\xff", {"content-type": "application/msgpack"}))
    async with AgentClient(server.url, "c") as client:
        with pytest.raises(Fault, match="cannot be read"):
            await client.sync(SyncRequest(epoch=1))


async def test_another_agents_epoch_is_told_apart(server: Server) -> None:
    server.will(refused(409, "stale_epoch"))
    async with AgentClient(server.url, "c") as client:
        with pytest.raises(Conflict) as caught:
            await client.sync(SyncRequest(epoch=1))
    assert caught.value.code == "stale_epoch"


async def test_a_redirect_is_not_followed(server: Server) -> None:
    server.will(Response(302, b"", {"location": "http://169.254.169.254/"}))
    async with AgentClient(server.url, "c") as client:
        with pytest.raises(Fault):
            await client.sync(SyncRequest(epoch=1))
    assert len(server.requests) == 1


async def test_the_secret_part_of_an_address_stands_in_no_message(server: Server) -> None:
    await server.http.go_away()
    async with ObjectClient(server.url) as objects:
        with pytest.raises(Fault) as caught:
            await objects.put("/objects/k?signature=SECRET", b"x", size=1)
    assert "SECRET" not in str(caught.value) + caught.value.hint + str(caught.value.detail)


async def test_a_stream_shorter_than_announced_is_a_fault(server: Server) -> None:
    server.will(Response(200))

    async def body() -> AsyncIterator[bytes]:
        yield b"ab"

    async with ObjectClient(server.url, timeout_s=1) as objects:
        with pytest.raises(Fault):
            await objects.put("/objects/k", body(), size=5)


@pytest.mark.parametrize("url", ["", "verderer.example.com", "ftp://x", "http://"])
def test_what_is_no_address_is_refused_with_an_example(url: str) -> None:
    with pytest.raises(Invalid) as caught:
        Transport(url)
    assert "https://" in caught.value.hint


def test_a_missing_file_of_certificates_is_named() -> None:
    with pytest.raises(Invalid, match="no such file: /nowhere"):
        Transport("https://x", ca_file="/nowhere")
