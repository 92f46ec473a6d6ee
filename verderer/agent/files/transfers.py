"""Moves bytes between the cluster and the object store, by granted addresses."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass, field
from typing import Final, Literal, Protocol, TypeVar

from verderer.agent.backoff import Backoff
from verderer.agent.session import Complaints
from verderer.core.errors import (
    Fault,
    NotAllowed,
    NotAuthenticated,
    NotFound,
    Refusal,
    TooMany,
    VerdererError,
)
from verderer.wire.agent import Grant, GrantRequest, GrantResponse

Method = Literal["GET", "PUT"]
T = TypeVar("T")

MAX_KEYS: Final = 500
MAX_SURE_REFUSALS: Final = 5
"""How often an expired or refused address is asked for again before it is final."""
_USE_SHARE: Final = 0.7

Body = bytes | Callable[[], AsyncIterator[bytes]]


class ObjectAccess(Protocol):
    """`wire.object_client.ObjectClient`."""

    async def put(self, url: str, content: bytes | AsyncIterator[bytes], *, size: int) -> None: ...

    def get(self, url: str) -> AbstractAsyncContextManager[AsyncIterator[bytes]]: ...


class GivesAddresses(Protocol):
    """The request for addresses."""

    def grants(self, request: GrantRequest) -> Coroutine[object, object, GrantResponse]: ...


class Line(Protocol):
    """Whoever speaks to the control plane: an agent's session, or a step's carrier."""

    @property
    def epoch(self) -> int: ...
    @property
    def client(self) -> GivesAddresses: ...
    async def call(self, request: Coroutine[object, object, T]) -> T: ...


@dataclass(frozen=True, slots=True)
class Granted:
    """An address and how long to use it, in monotonic seconds."""

    grant: Grant
    until: float

    @property
    def usable(self) -> bool:
        return time.monotonic() < self.until


@dataclass(slots=True)
class _Round:
    wanted: dict[str, asyncio.Future[Granted]] = field(default_factory=dict)
    task: asyncio.Task[None] | None = None


class Granter:
    """Asks for addresses; requests of the same instant travel together."""

    def __init__(self, session: Line) -> None:
        self._session = session
        self._rounds: dict[Method, _Round] = {"GET": _Round(), "PUT": _Round()}

    async def grant(self, method: Method, key: str) -> Granted:
        """An address for one object.

        Raises:
            NotFound: the control plane knows no such object, or gives no address for it.
            VerdererError: as the client says.
        """
        waiting = self._rounds[method]
        future = waiting.wanted.get(key)
        if future is None:
            future = asyncio.get_running_loop().create_future()
            waiting.wanted[key] = future
        if waiting.task is None:
            waiting.task = asyncio.create_task(self._ask(method), name=f"grants {method}")
        return await asyncio.shield(future)

    async def below(self, prefix: str) -> list[Grant]:
        """Addresses for reading everything whose key begins with `prefix`."""
        request = GrantRequest(epoch=self._session.epoch, method="GET", listing=prefix)
        return (await self._session.call(self._session.client.grants(request))).grants

    async def _ask(self, method: Method) -> None:
        waiting = self._rounds[method]
        await asyncio.sleep(0)  # let everybody who was woken with us add a key
        while waiting.wanted:
            keys = list(waiting.wanted)[:MAX_KEYS]
            futures = {key: waiting.wanted.pop(key) for key in keys}
            await self._ask_for(method, futures)
        waiting.task = None

    async def _ask_for(self, method: Method, futures: dict[str, asyncio.Future[Granted]]) -> None:
        asked = time.monotonic()
        request = GrantRequest(epoch=self._session.epoch, method=method, keys=list(futures))
        try:
            answer = await self._session.call(self._session.client.grants(request))
        except NotFound as error:
            await self._apart(method, futures, error)
            return
        except Exception as error:  # noqa: BLE001 - handed to those who wait, none is swallowed
            for future in futures.values():
                _fail(future, error)
            return
        given = {grant.key: grant for grant in answer.grants}
        for key, future in futures.items():
            if future.done():
                continue
            if key in given:
                future.set_result(Granted(given[key], asked + _USE_SHARE * answer.ttl_s))
            else:
                _fail(future, NotFound(f"no address was granted for {key[:300]!a}"))

    async def _apart(
        self, method: Method, futures: dict[str, asyncio.Future[Granted]], error: NotFound
    ) -> None:
        """One key is unknown; the others must not suffer for it."""
        if len(futures) == 1:
            for future in futures.values():
                _fail(future, error)
            return
        for key, future in futures.items():
            await self._ask_for(method, {key: future})


def _fail(future: asyncio.Future[Granted], error: Exception) -> None:
    if not future.done():
        future.set_exception(error)
        future.exception()  # whoever waited may be gone; that is no reason to complain


class Transfers:
    """Reads and writes objects by key, patiently: an outage of the store is waited out."""

    def __init__(
        self, granter: Granter, objects: ObjectAccess, *, first_wait_s: float = 0.2
    ) -> None:
        self.granter = granter
        self._objects = objects
        self._first_wait_s = first_wait_s
        # Each holds a piece of a file in memory; the network is no quicker for more of them.
        self.slots = asyncio.Semaphore(8)

    async def put(self, key: str, size: int, body: Body) -> None:
        """Store an object, however long that takes. `body` gives its bytes from the start anew.

        Raises:
            Refusal: the store or the control plane will not take it.
            Superseded: another agent has taken over.
        """

        async def once() -> None:
            granted = await self.granter.grant("PUT", key)
            content = body if isinstance(body, bytes) else body()
            await self._objects.put(granted.grant.url, content, size=size)

        await self.patiently(f"storing {key[:300]!a}", once)

    async def put_once(self, granted: Granted, data: bytes) -> None:
        """Store by an address already in hand, without trying again."""
        await self._objects.put(granted.grant.url, data, size=len(data))

    @asynccontextmanager
    async def reading(self, grant: Grant) -> AsyncIterator[AsyncIterator[bytes]]:
        """Parts of an object, without trying again."""
        async with self._objects.get(grant.url) as parts:
            yield parts

    async def patiently(self, what: str, once: Callable[[], Awaitable[None]]) -> None:
        """Call `once` until it succeeds or is refused for good; raises as `put`."""
        backoff, complaints = Backoff(first_s=self._first_wait_s), Complaints(what)
        refusals = 0
        while True:
            try:
                await once()
            except (NotAllowed, NotAuthenticated) as error:
                # Most often the address has expired, or a clock is off; a new one may do.
                refusals += 1
                if refusals >= MAX_SURE_REFUSALS:
                    raise
                failed: VerdererError = error
            except (Fault, TooMany) as error:
                failed = error
            else:
                complaints.over()
                return
            wait = backoff.next_s(getattr(failed, "retry_after_s", 0.0))
            complaints.trouble(failed, retry_s=wait)
            await asyncio.sleep(wait)


def final(error: VerdererError) -> bool:
    """Whether trying again cannot help."""
    return isinstance(error, Refusal) and not isinstance(error, TooMany | NotAuthenticated)
