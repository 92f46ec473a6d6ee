"""The right to speak for a cluster: opened by hello, lost when another agent opens one.

Two agents with one credential (a restored image, a rolling update that overlaps) must not fight.
The one that said hello last holds the session; the other gets 409 `stale_epoch` at its next
request, stops acting at once and exits with `EXIT_SUPERSEDED`, leaving the work alone. It leaves a
note in its state directory, so that when a supervisor starts it again it first waits: 15 s after
the first time, doubling to 10 minutes. The note goes when a session has lasted for ten minutes.
"""

from __future__ import annotations

import asyncio
import contextlib
import secrets
import time
from collections.abc import Callable, Coroutine
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, Protocol, TypeVar

import msgspec
import structlog

from verderer.agent.backoff import Backoff
from verderer.core.errors import (
    Conflict,
    NotAuthenticated,
    Refusal,
    TooMany,
    VerdererError,
)
from verderer.wire.agent import (
    PROTOCOL,
    GrantRequest,
    GrantResponse,
    Hello,
    Report,
    ReportAck,
    SyncRequest,
    SyncResponse,
    Welcome,
)
from verderer.wire.carry import CarryRequest, CarryTicket

log = structlog.get_logger("verderer.agent")

STALE: Final = "stale_epoch"
SESSION_IS_SOUND_S: Final = 600.0
_FIRST_PAUSE_S: Final = 15.0
_LONGEST_PAUSE_S: Final = 600.0
_UNAUTHENTICATED_PAUSE_S: Final = 5.0
_LOG_EVERY_S: Final = 30.0

T = TypeVar("T")


class Superseded(Exception):
    """Another agent speaks for this cluster now."""


class ControlPlane(Protocol):
    """The four requests; `wire.client.AgentClient` makes them."""

    def hello(self, hello: Hello) -> Coroutine[object, object, Welcome]: ...
    def sync(self, request: SyncRequest) -> Coroutine[object, object, SyncResponse]: ...
    def report(self, report: Report) -> Coroutine[object, object, ReportAck]: ...
    def grants(self, request: GrantRequest) -> Coroutine[object, object, GrantResponse]: ...
    def carry(self, request: CarryRequest) -> Coroutine[object, object, CarryTicket]: ...


class Session:
    """Requests in the name of one epoch."""

    def __init__(
        self, client: ControlPlane, welcome: Welcome, *, clock_ahead_s: float = 0.0
    ) -> None:
        self.client = client
        self.epoch = welcome.epoch
        self.cluster = welcome.cluster
        self.heartbeat_s = welcome.heartbeat_s
        self.cluster_number = welcome.number
        """Of the cluster's row: its agent's own objects are named by it."""
        self.clock_ahead_s = clock_ahead_s
        """How far this machine's clock is ahead of the control plane's."""
        self.over = asyncio.Event()
        """Set when another agent has taken over."""

    async def call(self, request: Coroutine[object, object, T]) -> T:
        """Await one request of this session.

        Raises:
            Superseded: the session is over; nothing more may be started or reported.
            VerdererError: as the client says.
        """
        if self.over.is_set():
            request.close()
            raise Superseded
        try:
            return await request
        except Conflict as error:
            if error.code == STALE:
                self.over.set()
                raise Superseded from error
            raise


@dataclass(slots=True)
class Complaints:
    """Says what is wrong when it begins, now and then, and when it is over."""

    what: str
    _since: float | None = None
    _said: float = field(default=-_LOG_EVERY_S)

    def trouble(self, error: VerdererError, *, retry_s: float) -> None:
        now = time.monotonic()
        if self._since is None:
            self._since = now
        if now - self._said >= _LOG_EVERY_S:
            self._said = now
            log.warning(
                f"{self.what} failed",
                reason=error.message,
                hint=advice(error),
                for_s=round(now - self._since, 1),
                retry_s=round(retry_s, 2),
            )

    def over(self) -> None:
        if self._since is not None:
            log.info(f"{self.what} works again", after_s=round(time.monotonic() - self._since, 1))
        self._since, self._said = None, -_LOG_EVERY_S


def advice(error: VerdererError) -> str:
    """What a person can do about it."""
    if isinstance(error, NotAuthenticated):
        return (
            "the credential is unknown or revoked: make a new one on the cluster's page, "
            "give it to the agent and start it again; running work is not touched meanwhile"
        )
    return error.hint


def pause_s(error: VerdererError, backoff: Backoff) -> float:
    """How long to wait before asking again; what a refusal says will not change in an instant."""
    wait = backoff.next_s(getattr(error, "retry_after_s", 0.0))
    if isinstance(error, Refusal) and not isinstance(error, TooMany):
        wait = max(wait, _UNAUTHENTICATED_PAUSE_S)
    return wait


async def open_session(
    client: ControlPlane, *, version: str, kind: str, stops_within_s: float | None = None
) -> Session:
    """Say hello until it is answered; never gives up. `stops_within_s`: see `StopsUnheard`."""
    hello = Hello(
        instance=secrets.token_hex(8),
        version=version,
        kind=kind,
        protocol=PROTOCOL,
        stops_within_s=stops_within_s,
    )
    backoff, complaints = Backoff(), Complaints("hello to the control plane")
    while True:
        began = time.time()
        try:
            welcome = await client.hello(hello)
        except VerdererError as error:
            wait = pause_s(error, backoff)
            complaints.trouble(error, retry_s=wait)
            await asyncio.sleep(wait)
            continue
        complaints.over()
        log.info("session opened", cluster=welcome.cluster, epoch=welcome.epoch)
        middle = (began + time.time()) / 2
        ahead_s = middle - welcome.server_unix_ms / 1000
        return Session(client, welcome, clock_ahead_s=ahead_s)


class _Note(msgspec.Struct, frozen=True):
    times: int
    unix_s: float


class SupersededNote:
    """Remembers in the state directory that this agent was superseded, and how often."""

    def __init__(self, state_dir: Path, *, clock: Callable[[], float] = time.time) -> None:
        self._path = state_dir / "superseded.json"
        self._clock = clock

    def leave(self) -> None:
        """Write down one more time."""
        note = _Note(times=self._read().times + 1, unix_s=self._clock())
        with contextlib.suppress(OSError):
            self._path.write_bytes(msgspec.json.encode(note))

    def pause_s(self) -> float:
        """How long to keep still before the next hello; 0 when nothing is noted."""
        note = self._read()
        if not note.times:
            return 0.0
        pause = min(_LONGEST_PAUSE_S, _FIRST_PAUSE_S * 2.0 ** min(note.times - 1, 10))
        # A clock that was set back must not make the pause longer.
        passed = max(0.0, self._clock() - note.unix_s)
        return max(0.0, pause - passed)

    def clear(self) -> None:
        self._path.unlink(missing_ok=True)

    def _read(self) -> _Note:
        try:
            return msgspec.json.decode(self._path.read_bytes(), type=_Note)
        except (OSError, msgspec.DecodeError):
            return _Note(times=0, unix_s=0.0)
