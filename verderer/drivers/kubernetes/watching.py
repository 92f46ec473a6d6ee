"""Keeps what a list shows current by watching; one instance for each kind of object.

A list comes in pages of one snapshot. The watch goes on from there; bookmarks move its version
on, so that a quiet watch does not grow too old. When the server says that the version is gone,
in an answer or in the middle of a stream, the list is read again and compared, since what was
deleted meanwhile is told by nobody. A stream that is silent for longer than bookmarks ever are is
dead, whatever TCP believes.
"""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import dataclass, field
from typing import Final, Generic, TypeVar

import msgspec
import structlog

from verderer.core.errors import Fault, VerdererError
from verderer.drivers.kubernetes.calls.api import Api
from verderer.drivers.kubernetes.calls.errors import Gone, Silence, answered
from verderer.drivers.kubernetes.seen.sights import Happening, Page, Versioned

log = structlog.get_logger("verderer.kubernetes")

PAGE: Final = 100
"""Objects a page: with 250 an agent that watches ten thousand pods needs 3 MiB more."""
SILENCE_S: Final = 90.0
"""Bookmarks come about once a minute."""
_SHORTEST_S: Final = 240
_LONGEST_S: Final = 360
_FIRST_PAUSE_S: Final = 0.2
_LONGEST_PAUSE_S: Final = 15.0
_UNSEEN_S: Final = 10.0
"""A view that could not be kept current for so long is not given out any more."""

S = TypeVar("S", bound=msgspec.Struct)
K = TypeVar("K")

_HAPPENING: Final = msgspec.json.Decoder(Happening)
_VERSIONED: Final = msgspec.json.Decoder(Versioned)


@dataclass(frozen=True, slots=True, kw_only=True)
class Subject(Generic[S, K]):
    """What to watch, and what to keep of it."""

    name: str
    path: str
    kind: type[S]
    identity: Callable[[S], str]
    """Unique among the objects of the list, over time: most often the UID."""
    keep: Callable[[S], K]
    changed: Callable[[K | None, K | None], None]
    """Called with what was and what is; None for nothing."""
    params: Mapping[str, str] = field(default_factory=dict)


class Watched(Generic[S, K]):
    """The current view of one subject."""

    def __init__(
        self,
        api: Api,
        subject: Subject[S, K],
        *,
        silence_s: float = SILENCE_S,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.items: dict[str, K] = {}
        self.synced = asyncio.Event()
        """Set once a whole list has been read."""
        self._api = api
        self._subject = subject
        self._silence_s = silence_s
        self._clock = clock
        self._version = ""
        self._trouble: VerdererError | None = None
        self._since: float | None = None
        self._pages: msgspec.json.Decoder[Page[S]] = msgspec.json.Decoder(
            Page[subject.kind]  # type: ignore[name-defined]
        )
        self._objects: msgspec.json.Decoder[S] = msgspec.json.Decoder(subject.kind)

    @property
    def trouble(self) -> VerdererError | None:
        """Why the view is too old to be believed; None while it is current."""
        stale = self._since is not None and self._clock() - self._since >= _UNSEEN_S
        return self._trouble if stale or not self.synced.is_set() else None

    async def run(self) -> None:
        """Keep the view current until cancelled."""
        pause = _FIRST_PAUSE_S
        while True:
            began = self._clock()
            try:
                if not self._version:
                    await self._list()
                    self._well()
                await self._watch()
                self._well()
            except Gone:
                self._version = ""
            except Silence:
                # Some kinds of objects bring no bookmarks: opened again from the same version.
                log.debug("a silent watch is opened again", of=self._subject.name)
            except VerdererError as error:
                self._note(error)
                wait = max(pause, getattr(error, "retry_after_s", 0.0) if pause > 1.0 else 0.0)
                await asyncio.sleep(wait * random.uniform(0.7, 1.3))
                pause = min(_LONGEST_PAUSE_S, pause * 2)
                continue
            if self._clock() - began < _FIRST_PAUSE_S:
                # A server that ends streams at once must not be asked in a tight loop.
                await asyncio.sleep(pause)
                pause = min(_LONGEST_PAUSE_S, pause * 2)
            else:
                pause = _FIRST_PAUSE_S

    async def ready(self, within_s: float) -> None:
        """Return once the view is whole. Raises Fault when that takes too long."""
        try:
            async with asyncio.timeout(within_s):
                await self.synced.wait()
        except TimeoutError:
            if self._trouble is not None:
                raise self._trouble from None
            raise Fault(f"the list of {self._subject.name} is not complete yet") from None

    def put(self, seen: S) -> None:
        """Take in an object that a call of ours was answered with, ahead of the watch.

        One that the watch has overtaken is dropped.
        """
        known = self.items.get(self._subject.identity(seen))
        if _version(known) <= _version(seen):
            self._take(seen)

    def gone(self, seen: S) -> None:
        """Take in that an object has been deleted by a call of ours."""
        self._drop(self._subject.identity(seen))

    async def _list(self) -> None:
        found: set[str] = set()
        token, version = "", ""
        while True:
            params = {**self._subject.params, "limit": str(PAGE)}
            if token:
                params["continue"] = token
            page = await self._page(params)
            for item in page.items or ():
                found.add(self._subject.identity(item))
                self._take(item)
            token, version = page.metadata.continue_, page.metadata.resource_version
            if not token:
                break
            # Decoding is work: whoever else has something to do goes first.
            await asyncio.sleep(0)
        for gone in self.items.keys() - found:
            self._drop(gone)
        self._version = version
        self.synced.set()

    async def _page(self, params: Mapping[str, str]) -> Page[S]:
        body = await self._api.get(self._subject.path, msgspec.Raw, params)
        try:
            return self._pages.decode(body)
        except msgspec.DecodeError as error:
            raise Fault(f"a list of {self._subject.name} makes no sense: {error}") from error

    async def _watch(self) -> None:
        params = {
            **self._subject.params,
            "watch": "true",
            "resourceVersion": self._version,
            "allowWatchBookmarks": "true",
            "timeoutSeconds": str(random.randint(_SHORTEST_S, _LONGEST_S)),
        }
        async with self._api.stream(
            self._subject.path, params, silence_s=self._silence_s
        ) as stream:
            self._well()
            async for line in lines(stream):
                self._happened(line)
                self._well()

    def _happened(self, line: bytes) -> None:
        try:
            event = _HAPPENING.decode(line)
            if event.type in ("ADDED", "MODIFIED"):
                self._version = self._take(self._objects.decode(event.object))
            elif event.type == "DELETED":
                gone = self._objects.decode(event.object)
                # What it last was is worth knowing: it may have ended in the same instant.
                self._version = self._take(gone)
                self._drop(self._subject.identity(gone))
            elif event.type == "BOOKMARK":
                self._version = _VERSIONED.decode(event.object).metadata.resource_version
            elif event.type == "ERROR":
                raise _error(bytes(event.object))
        except msgspec.DecodeError as error:
            self._version = ""
            raise Fault(f"the watch of {self._subject.name} makes no sense: {error}") from error

    def _take(self, seen: S) -> str:
        identity = self._subject.identity(seen)
        before, now = self.items.get(identity), self._subject.keep(seen)
        self.items[identity] = now
        if before != now:
            self._subject.changed(before, now)
        version: str = seen.metadata.resource_version  # type: ignore[attr-defined]
        return version

    def _drop(self, identity: str) -> None:
        gone = self.items.pop(identity, None)
        if gone is not None:
            self._subject.changed(gone, None)

    def _note(self, error: VerdererError) -> None:
        if self._since is None:
            self._since = self._clock()
            log.warning(
                f"watching {self._subject.name} failed", reason=error.message, hint=error.hint
            )
        self._trouble = error if isinstance(error, Fault) else _as_fault(error)

    def _well(self) -> None:
        if self._since is not None:
            seconds = round(self._clock() - self._since, 1)
            log.info(f"watching {self._subject.name} works again", after_s=seconds)
        self._since = self._trouble = None


async def lines(stream: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    """Whole lines of a stream, however long; what stands behind the last line's end is dropped."""
    kept: list[bytes] = []
    async for data in stream:
        *ended, rest = data.split(b"\n")
        for part in ended:
            line = b"".join((*kept, part)) if kept else part
            kept.clear()
            if line:
                yield line
        if rest:
            kept.append(rest)


def _version(seen: object) -> int:
    """Versions of one object can be compared as numbers; 0 for what carries none."""
    text = getattr(getattr(seen, "metadata", None), "resource_version", "")
    return int(text) if text.isdigit() else 0


def _error(body: bytes) -> VerdererError:
    try:
        code = int(msgspec.json.decode(body).get("code", 500))
    except (msgspec.DecodeError, AttributeError, TypeError, ValueError):
        code = 500
    return answered(code if code >= 400 else 500, body)


def _as_fault(error: VerdererError) -> Fault:
    """A view that may not be read is a cluster out of reach, not an attempt refused."""
    fault = Fault(error.message, retry_after_s=5.0, hint=error.hint)
    fault.__cause__ = error
    return fault
