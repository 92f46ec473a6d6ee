"""The few requests that we make, in bytes and typed sights; errors come out as our own."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Coroutine, Mapping
from typing import Any, Final, TypeVar

import httpx2
import msgspec

from verderer.core.errors import Fault, NotFound, VerdererError
from verderer.drivers.kubernetes import naming
from verderer.drivers.kubernetes.calls.bucket import TokenBucket
from verderer.drivers.kubernetes.calls.connection import CONNECT_S, Connection
from verderer.drivers.kubernetes.calls.errors import Silence, answered, unreachable

T = TypeVar("T")
Params = Mapping[str, str]

MERGE: Final = "application/merge-patch+json"
APPLY: Final = "application/apply-patch+yaml"
JSON: Final = "application/json"
_CLOSE_S: Final = 2.0
_MANAGER: Final = {"fieldManager": naming.FIELD_MANAGER}


class Api:
    """One cluster's API server. Writes wait for their turn in the token bucket."""

    def __init__(self, connection: Connection, *, writes_per_s: float) -> None:
        """Opens nothing yet.

        Raises:
            Invalid: a certificate or a key of the connection cannot be used.
        """
        self._calls = connection.client()
        # Watches and followed logs stay open: they must not use up the connections of calls.
        self._streams = connection.client(most=None)
        self._writes = TokenBucket(writes_per_s, max(1.0, writes_per_s))

    async def close(self) -> None:
        """Let go of all connections."""
        await self._calls.aclose()
        await self._streams.aclose()
        # Sockets are closed by the loop's next rounds; a loop that ends here would leak them.
        for _ in range(3):
            await asyncio.sleep(0)

    async def get(self, path: str, kind: type[T], params: Params | None = None) -> T:
        """Read one object or one page.

        Raises:
            Refusal: `NotFound`, or no right to.
            Fault: no answer, or one that makes no sense.
        """
        return _decoded(await self._call("GET", path, params=params), kind)

    async def date(self, path: str) -> str:
        """The `Date` of an answer: the server's clock, to the second. Raises as `get`."""
        try:
            response = await self._calls.get(path)
        except httpx2.HTTPError as error:
            raise unreachable(error) from error
        text: str = response.headers.get("Date", "")
        return text

    async def create(self, path: str, body: Mapping[str, Any], kind: type[T]) -> T:
        """Create an object.

        Raises:
            Conflict: with code `already_exists`, there is one of that name.
            Refusal: it will never be accepted.
            Fault: it may have been accepted: ask before concluding anything.
        """
        await self._writes.take()
        return _decoded(
            await self._call("POST", path, body=body, params=_MANAGER, content=JSON), kind
        )

    async def patch(
        self, path: str, body: Mapping[str, Any], kind: type[T], *, content: str = MERGE
    ) -> T:
        """Change an object. Raises as `create`, and NotFound."""
        await self._writes.take()
        params = {**_MANAGER, "force": "true"} if content == APPLY else _MANAGER
        return _decoded(
            await self._call("PATCH", path, body=body, params=params, content=content), kind
        )

    async def delete(
        self, path: str, *, uid: str = "", grace_s: float | None = None, propagation: str = ""
    ) -> bool:
        """Delete an object if it is the one with `uid`; False when there is none such."""
        await self._writes.take()
        options: dict[str, Any] = {"apiVersion": "v1", "kind": "DeleteOptions"}
        if uid:
            options["preconditions"] = {"uid": uid}
        if grace_s is not None:
            options["gracePeriodSeconds"] = int(grace_s)
        if propagation:
            options["propagationPolicy"] = propagation
        try:
            await self._call("DELETE", path, body=options, content=JSON)
        except NotFound:
            return False
        except VerdererError as error:
            if uid and "uid" in error.message.lower() and "precondition" in error.message.lower():
                return False
            raise
        return True

    @contextlib.asynccontextmanager
    async def stream(
        self, path: str, params: Params, *, silence_s: float
    ) -> AsyncIterator[AsyncIterator[bytes]]:
        """The bytes of a long answer as they come; `Silence` after `silence_s` without any.

        Raises:
            Refusal: `NotFound`, or no right to.
            Fault: no answer, or a broken one.
        """
        timeout = httpx2.Timeout(silence_s, connect=CONNECT_S, pool=None)
        request = self._streams.build_request("GET", path, params=params, timeout=timeout)
        try:
            response = await _opened(self._streams.send(request, stream=True))
            try:
                if response.status_code >= 400:
                    raise _error(response, await response.aread())
                yield _translated(response)
            finally:
                await response.aclose()
        except httpx2.HTTPError as error:
            raise unreachable(error) from error

    async def _call(
        self,
        method: str,
        path: str,
        *,
        params: Params | None = None,
        body: Mapping[str, Any] | None = None,
        content: str = "",
    ) -> bytes:
        headers = {"Content-Type": content} if content else {}
        data = msgspec.json.encode(body) if body is not None else None
        try:
            response = await self._calls.request(
                method, path, params=params, content=data, headers=headers
            )
        except httpx2.HTTPError as error:
            raise unreachable(error) from error
        if response.status_code >= 400:
            raise _error(response, response.content)
        if response.status_code >= 300:
            raise Fault(f"the API server answered {response.status_code}: is it one?")
        return response.content


async def _opened(sending: Coroutine[object, object, httpx2.Response]) -> httpx2.Response:
    """The response; cancelled in between, what was opened is closed first.

    A connection given up while it is being made would leak its socket.
    """
    task = asyncio.ensure_future(sending)
    try:
        return await asyncio.shield(task)
    except asyncio.CancelledError:
        await asyncio.wait((task,), timeout=_CLOSE_S)
        if task.done() and not task.cancelled() and task.exception() is None:
            await task.result().aclose()
        task.cancel()
        raise


async def _translated(response: httpx2.Response) -> AsyncIterator[bytes]:
    try:
        async for data in response.aiter_bytes():
            yield data
    except httpx2.ReadTimeout as error:
        raise Silence("nothing came for a while") from error
    except httpx2.HTTPError as error:
        raise unreachable(error) from error


def _error(response: httpx2.Response, body: bytes) -> VerdererError:
    retry_after = response.headers.get("Retry-After", "")
    return answered(response.status_code, body, retry_after=retry_after)


def _decoded(body: bytes, kind: type[T]) -> T:
    try:
        return msgspec.json.decode(body, type=kind)
    except msgspec.DecodeError as error:
        raise Fault(f"the API server's answer makes no sense: {error}") from error
