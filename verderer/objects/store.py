"""The object store: bytes under keys, in memory, in a local directory or in an S3 bucket.

Every write is atomic: a reader sees the whole object or none of it. Every method raises `Fault`
when the store cannot be reached or is full, and `Invalid` when the key is not one.
"""

from __future__ import annotations

import asyncio
import builtins
import re
import secrets
from collections.abc import AsyncIterator, Awaitable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Literal, TypeVar

import obstore
from obstore.store import S3Store

from verderer.core.errors import Fault, NotFound, VerdererError
from verderer.objects.backends import directory
from verderer.objects.backends.clients import Client, build_client
from verderer.objects.backends.faults import Translator
from verderer.objects.backends.uploads import Body, Uploader
from verderer.objects.config import Backend, ObjectsConfig, locate
from verderer.objects.keys import check_key, check_prefix, tmp_key

if TYPE_CHECKING:
    from obstore import GetOptions, GetResult, ObjectMeta

_STREAM_CHUNK = 1024 * 1024
_LIST_PAGE = 1000
_ABOUT_RANGE = re.compile(r"range|\b416\b", re.IGNORECASE)

_T = TypeVar("_T")


@dataclass(frozen=True, slots=True)
class Stored:
    """One object that is there."""

    key: str
    size: int
    """Bytes."""
    etag: str
    """Changes whenever the bytes do; means nothing across backends."""
    modified: datetime | None = None
    """UTC; None straight after a put, which does not say."""


@dataclass(frozen=True, slots=True)
class Opened:
    """An object being read: what it is, and its bytes from the asked offset on."""

    stored: Stored
    body: AsyncIterator[bytes]


class ObjectStore:
    """One store; build it with `open_store`. Safe to use from many tasks of one event loop."""

    def __init__(
        self, client: Client, backend: Backend, *, root: Path | None, translator: Translator
    ) -> None:
        self._client = client
        self._translator = translator
        self._uploader = Uploader(client, translator)
        self.backend = backend
        self.root = root
        """The directory of a local store, else None."""

    async def put(
        self,
        key: str,
        body: bytes | AsyncIterator[bytes],
        *,
        create_only: bool = False,
        size: int | None = None,
    ) -> Stored:
        """Write an object; nothing of it is visible until all of it is.

        `size` is the stream's length in bytes where it is known, needed above 80 GB. An error
        that `body` raises passes through unchanged, and nothing is stored.

        Raises:
            Conflict: with `create_only`, the object exists; or an object stands where this key
                needs a folder.
        """
        check_key(key)
        if isinstance(body, bytes):
            return Stored(key, *await self._uploader.put_bytes(key, body, create_only=create_only))
        source = Body(body)
        try:
            written = await self._uploader.put_stream(
                key, source, create_only=create_only, size=size
            )
            return Stored(key, *written)
        except VerdererError:
            if source.error is not None:
                raise source.error from None
            raise

    async def get(self, key: str, *, start: int = 0, length: int | None = None) -> bytes:
        """At most `length` bytes from offset `start` on; empty at or beyond the object's end.

        Raises:
            NotFound: there is no such object.
        """
        opened = await self._open(key, start, length)
        if opened is None:
            return b""
        with self._translator.over("read", key):
            return (await opened.bytes_async()).to_bytes()

    async def open(self, key: str, *, start: int = 0, length: int | None = None) -> Opened:
        """Begin to read: the object's facts and its bytes, both of the same version.

        Raises:
            NotFound: there is no such object. (The body raises `Fault` if reading breaks off.)
        """
        opened = await self._open(key, start, length)
        if opened is None:
            return Opened(await self._must_head(key), _nothing())
        return Opened(_stored(key, opened.meta), self._chunks(key, opened))

    async def stream(self, key: str, *, start: int = 0) -> AsyncIterator[bytes]:
        """The object's bytes from `start` on, in chunks of about 1 MiB.

        Raises:
            NotFound: there is no such object.
        """
        opened = await self.open(key, start=start)
        async for chunk in opened.body:
            yield chunk

    async def head(self, key: str) -> Stored | None:
        """What is known about an object, or None when it is not there."""
        check_key(key)
        try:
            with self._translator.over("look up", key):
                return _stored(key, await obstore.head_async(self._client, key))
        except NotFound:
            return None

    async def delete(self, key: str) -> None:
        """Remove an object; nothing happens when it is not there."""
        check_key(key)
        with suppress(NotFound), self._translator.over("delete", key):
            await obstore.delete_async(self._client, key)

    async def list(
        self, prefix: str = "", *, after: str | None = None, limit: int = 1000
    ) -> builtins.list[Stored]:
        """At most `limit` objects under `prefix` in key order, those after the key `after`.

        `prefix` is empty or ends in `/`. Fewer than `limit` means that there are no more.
        """
        check_prefix(prefix)
        if limit <= 0:
            return []
        with self._translator.over("list", prefix):
            if self.root is not None:
                entries = await asyncio.to_thread(
                    directory.page, self.root, prefix, after=after or "", limit=limit
                )
                return [Stored(one.key, one.size, one.etag, one.modified) for one in entries]
            return await self._list(prefix, after, limit)

    async def sign(
        self, keys: Sequence[str], method: Literal["GET", "PUT"], ttl: timedelta
    ) -> dict[str, str]:
        """Presigned URLs, one a key; only an S3 store can.

        Raises:
            TypeError: the store is not on S3.
        """
        if not isinstance(self._client, S3Store):
            raise TypeError(f"a {self.backend} store has no presigned URLs")
        wanted = [check_key(key) for key in keys]
        if not wanted:
            return {}
        with self._translator.over("sign", wanted[0]):
            urls = await obstore.sign_async(self._client, method, wanted, ttl)
        return dict(zip(wanted, urls, strict=True))

    async def probe(self) -> None:
        """Write, read back and delete a small object under `tmp/`.

        Raises:
            Fault: `detail["step"]` says which of `write`, `read` and `delete` failed first.
        """
        payload = secrets.token_bytes(64)
        key = tmp_key("probe", secrets.token_hex(8))
        await _probed("write", self.put(key, payload))
        try:
            read = await _probed("read", self.get(key))
            if read != payload:
                raise Fault(
                    "the object store gave back other bytes than were written",
                    hint="check the disk, and that no cache or proxy stands before the store",
                    detail={"step": "read", "key": key},
                )
        except Fault:
            with suppress(VerdererError):
                await self.delete(key)
            raise
        await _probed("delete", self.delete(key))

    async def _must_head(self, key: str) -> Stored:
        stored = await self.head(key)
        if stored is None:
            raise NotFound(f"there is no object {key!r}")
        return stored

    async def _open(self, key: str, start: int, length: int | None) -> GetResult | None:
        """Begin a read; None when the range holds no byte of an object that is there."""
        check_key(key)
        if start < 0 or (length is not None and length < 0):
            raise ValueError("start and length count bytes from 0 up")
        if length == 0:
            await self._must_head(key)
            return None
        options: GetOptions = {}
        if length is not None:
            options["range"] = (start, start + length)
        elif start > 0:
            options["range"] = {"offset": start}
        try:
            with self._translator.over("read", key):
                return await obstore.get_async(self._client, key, options=options)
        except Fault as error:
            # Backends word "beyond the end" each in their own way; the size settles it.
            about_range = _ABOUT_RANGE.search(error.detail["cause"])
            if about_range and (await self._must_head(key)).size <= start:
                return None
            raise

    async def _chunks(self, key: str, opened: GetResult) -> AsyncIterator[bytes]:
        with self._translator.over("read", key):
            async for chunk in opened.stream(min_chunk_size=_STREAM_CHUNK):
                if chunk:
                    yield bytes(chunk)

    async def _list(self, prefix: str, after: str | None, limit: int) -> builtins.list[Stored]:
        found: builtins.list[Stored] = []
        pages = obstore.list(
            self._client, prefix or None, offset=after, chunk_size=min(limit, _LIST_PAGE)
        )
        async for page in pages:
            found.extend(_stored(meta["path"], meta) for meta in page)
            if len(found) >= limit and self.backend is Backend.S3:
                break
        if self.backend is not Backend.S3:
            found.sort(key=lambda one: one.key)
        return found[:limit]


def open_store(config: ObjectsConfig) -> ObjectStore:
    """Build the store that `config` describes; a local directory is made, a bucket is not.

    Nothing is asked of a server yet: `probe` does that.

    Raises:
        Invalid: the settings contradict each other.
        Fault: the local directory cannot be made.
    """
    location = locate(config)
    hidden = tuple(secret for secret in (config.secret_key, config.access_key) if secret)
    return ObjectStore(
        build_client(config, location),
        location.backend,
        root=location.root,
        translator=Translator(secrets=hidden),
    )


async def _probed(step: str, work: Awaitable[_T]) -> _T:
    try:
        return await work
    except VerdererError as error:
        detail = error.detail if isinstance(error, Fault) else {}
        raise Fault(
            f"the object store failed its test at the step '{step}': {error.message}",
            hint=error.hint,
            retry_after_s=30.0,
            detail={**detail, "step": step},
        ) from error


async def _nothing() -> AsyncIterator[bytes]:
    empty: tuple[bytes, ...] = ()
    for chunk in empty:
        yield chunk


def _stored(key: str, meta: ObjectMeta) -> Stored:
    return Stored(key, meta["size"], meta["e_tag"] or "", meta["last_modified"])
