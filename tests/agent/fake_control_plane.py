"""The control plane's side of protocol 1 and an object store, in memory, over real HTTP."""

from __future__ import annotations

import asyncio
import itertools
from collections import defaultdict
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import quote, unquote

import msgspec

from tests.agent.http_server import HttpServer, Request, Response
from verderer.core.model.attempt import ATTEMPT_OVER, AttemptKey, AttemptState
from verderer.objects.logs import decode_chunk
from verderer.wire.agent import (
    AttemptFact,
    Grant,
    GrantRequest,
    GrantResponse,
    Hello,
    Launch,
    LogFact,
    NodeFact,
    Order,
    Refused,
    Report,
    ReportAck,
    SyncRequest,
    SyncResponse,
    Welcome,
)
from verderer.wire.carry import CarryRequest, CarryTicket

CREDENTIAL = "credential-of-a-test"
OVER = {state.value for state in ATTEMPT_OVER}


@dataclass
class Faults:
    """How many of the next requests of a kind (hello, sync, report, …, objects) fare badly."""

    lose_reply: dict[str, int] = field(default_factory=lambda: defaultdict(int))
    """Done, but the answer never arrives."""
    fail: dict[str, int] = field(default_factory=lambda: defaultdict(int))
    """Answered with 500 and nothing done."""
    dribble: dict[str, int] = field(default_factory=lambda: defaultdict(int))
    """Answered at one byte a second."""
    full: int = 0
    """Answered with the full set though a part was asked for."""

    def take(self, kind: dict[str, int], verb: str) -> bool:
        if kind[verb] <= 0:
            return False
        kind[verb] -= 1
        return True


class FakeControlPlane:
    def __init__(self) -> None:
        self.server = HttpServer(self._handle)
        self.faults = Faults()
        self.epoch = 0
        self.revision = 0
        self.orders: dict[str, Order] = {}
        self.facts: list[AttemptFact] = []
        self.states: dict[str, str] = {}
        self.ends: dict[str, list[AttemptFact]] = defaultdict(list)
        self.logs: dict[tuple[str, int, int], LogFact] = {}
        self.nodes: list[NodeFact] = []
        self.objects: dict[str, bytes] = {}
        self.puts: list[str] = []
        self.hellos: list[Hello] = []
        self.reports: list[Report] = []
        self.grant_requests = 0
        self.heartbeat_s = 2.0
        self.ttl_s = 60.0
        self.refuse_objects = 0
        """Status with which the object store answers everything; 0 for none."""
        self.credential = CREDENTIAL
        self._changed = asyncio.Event()
        self._runs = itertools.count(1)

    @property
    def url(self) -> str:
        return self.server.url

    async def __aenter__(self) -> FakeControlPlane:
        await self.server.come_back()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.server.go_away()

    # What a test does

    def order(self, *, start: bool = True, **launch: Any) -> str:
        """Want one more attempt; returns its key."""
        key = str(AttemptKey(next(self._runs), 0, 1))
        spec = Launch(**{"run_name": "r", "step": "s", "project": "p", **launch})
        self._put(
            Order(key=key, revision=0, launch=spec if start else None, log_prefix=f"logs/{key}/")
        )
        return key

    def cancel(self, key: str, *, grace_s: float = 1.0) -> None:
        old = self.orders[key]
        self._put(Order(key=key, revision=0, grace_s=grace_s, log_prefix=old.log_prefix))

    def send_again(self) -> None:
        """Every order gets a new revision, as if each had changed."""
        for order in list(self.orders.values()):
            self._put(order)

    def state(self, key: str) -> str:
        return self.states.get(key, AttemptState.ASSIGNED.value)

    def end_of(self, key: str) -> AttemptFact:
        return self.ends[key][0]

    def log_of(self, key: str, replica: int = 0) -> bytes:
        """The replica's output as a reader puts it together from the facts."""
        text, at = b"", 0
        for fact in self._chunks(key, replica):
            if not fact.size and not fact.lost:
                continue
            chunk = decode_chunk(self.objects[f"logs/{key}/{replica}/{fact.sequence:08d}"])
            assert fact.first_byte == at == chunk.first_byte, "chunks follow one another"
            text += chunk.data[: fact.size]
            at += fact.size
        return text

    def lost_of(self, key: str, replica: int = 0) -> int:
        return sum(fact.lost for fact in self._chunks(key, replica))

    def log_complete(self, key: str, replica: int = 0) -> bool:
        chunks = self._chunks(key, replica)
        return bool(chunks) and chunks[-1].complete

    def _chunks(self, key: str, replica: int) -> list[LogFact]:
        found = [fact for (k, r, _), fact in self.logs.items() if k == key and r == replica]
        return sorted(found, key=lambda fact: fact.sequence)

    def _put(self, order: Order) -> None:
        self.revision += 1
        self.orders[order.key] = msgspec.structs.replace(order, revision=self.revision)
        self._changed.set()

    # What the agent sees

    async def _handle(self, request: Request) -> Response:
        if request.path.startswith("/objects/"):
            return self._object(request)
        verb = request.path.removeprefix("/api/v1/agent/")
        if request.headers.get("authorization") != f"Bearer {self.credential}":
            return _problem(401, "not_authenticated", "unknown credential")
        if self.faults.take(self.faults.fail, verb):
            return Response(500, b"oops", {"content-type": "text/plain"})
        answer = await self._answer(verb, request.body)
        if isinstance(answer, Response):
            return answer
        response = Response(
            body=msgspec.msgpack.encode(answer), headers={"content-type": "application/msgpack"}
        )
        if self.faults.take(self.faults.dribble, verb):
            response.bytes_per_s = 1.0
        response.lose = self.faults.take(self.faults.lose_reply, verb)
        return response

    async def _answer(self, verb: str, body: bytes) -> msgspec.Struct | Response:
        if verb == "hello":
            return self._hello(msgspec.msgpack.decode(body, type=Hello))
        types: dict[str, Any] = {
            "sync": SyncRequest,
            "report": Report,
            "grants": GrantRequest,
            "carry": CarryRequest,
        }
        document = msgspec.msgpack.decode(body, type=types[verb])
        if document.epoch != self.epoch:
            return _problem(409, "stale_epoch", "another agent has opened a session")
        if verb == "carry":
            return CarryTicket(ticket=f"for {document.attempt}")
        if verb == "sync":
            return await self._sync(document)
        return self._report(document) if verb == "report" else self._grants(document)

    def _hello(self, hello: Hello) -> Welcome:
        self.hellos.append(hello)
        self.epoch += 1
        self._changed.set()
        return Welcome(
            cluster="test", epoch=self.epoch, heartbeat_s=self.heartbeat_s, server_unix_ms=0
        )

    async def _sync(self, request: SyncRequest) -> SyncResponse | Response:
        until = asyncio.get_running_loop().time() + request.wait_s
        full = request.since == 0 or bool(self.faults.full)
        self.faults.full = max(0, self.faults.full - 1)
        while not full and self.revision <= request.since:
            if request.epoch != self.epoch:
                return _problem(409, "stale_epoch", "another agent has opened a session")
            self._changed.clear()
            try:
                async with asyncio.timeout_at(until):
                    await self._changed.wait()
            except TimeoutError:
                break
        orders = [o for o in self.orders.values() if full or o.revision > request.since]
        return SyncResponse(epoch=self.epoch, revision=self.revision, full=full, orders=orders)

    def _report(self, report: Report) -> ReportAck:
        self.reports.append(report)
        refused = []
        for fact in report.attempts:
            if self.states.get(fact.key) in OVER or fact.key not in self.orders:
                self.ends[fact.key].append(fact)
                refused.append(Refused(key=fact.key, reason="over"))
                continue
            self.facts.append(fact)
            self.states[fact.key] = fact.state
            if fact.state in OVER:
                self.ends[fact.key].append(fact)
                del self.orders[fact.key]
        for log in report.logs:
            self.logs[log.key, log.replica, log.sequence] = log
        if report.nodes is not None:
            self.nodes = report.nodes
        return ReportAck(epoch=self.epoch, refused=refused)

    def _grants(self, request: GrantRequest) -> GrantResponse:
        self.grant_requests += 1
        keys = request.keys or sorted(k for k in self.objects if k.startswith(request.listing))
        grants = [
            Grant(
                key=key,
                url=f"/objects/{quote(key)}",
                size=len(self.objects[key]) if key in self.objects else None,
            )
            for key in keys
        ]
        return GrantResponse(grants=grants, ttl_s=self.ttl_s)

    def _object(self, request: Request) -> Response:
        key = unquote(request.path.removeprefix("/objects/"))
        assert "authorization" not in request.headers, "an address carries its own right"
        if self.refuse_objects:
            return Response(self.refuse_objects)
        if self.faults.take(self.faults.fail, "objects"):
            return Response(503)
        if request.method == "PUT":
            self.puts.append(key)
            self.objects[key] = request.body
            return Response(200, lose=self.faults.take(self.faults.lose_reply, "objects"))
        if key not in self.objects:
            return Response(404)
        return Response(200, self.objects[key])


def _problem(status: int, code: str, detail: str) -> Response:
    body = msgspec.json.encode({"status": status, "code": code, "detail": detail})
    return Response(status, body, {"content-type": "application/problem+json"})
