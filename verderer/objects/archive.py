"""A folder of objects as one ZIP, made while it is sent: no file of it is ever whole in memory."""

from __future__ import annotations

import io
import zipfile
from collections.abc import AsyncIterator

from verderer.objects.store import ObjectStore, Stored

_PAGE = 1_000
_PART = 256 * 1024


class _Sink(io.RawIOBase):
    """Takes what `zipfile` writes; it cannot seek, so sizes come behind each file."""

    def __init__(self) -> None:
        self._parts = bytearray()

    def writable(self) -> bool:
        return True

    def write(self, data: object, /) -> int:
        view = memoryview(data).cast("B")  # type: ignore[arg-type]
        self._parts += view
        return len(view)

    def take(self, least: int) -> bytes:
        """What came in, once it is `least` bytes; else nothing."""
        if len(self._parts) < least:
            return b""
        taken = bytes(self._parts)
        self._parts.clear()
        return taken


async def zip_of(store: ObjectStore, prefix: str) -> AsyncIterator[bytes]:
    """Everything below `prefix`, which ends with a slash, under the rest of its key.

    Nothing is compressed: models and images hardly shrink, and a processor per download is too
    much. A file that ends early or is gone breaks the stream off, so that nobody takes a part for
    the whole.

    Raises:
        NotFound, Fault: as `ObjectStore.stream`.
    """
    sink = _Sink()
    with zipfile.ZipFile(sink, "w", zipfile.ZIP_STORED) as archive:
        async for one in _all(store, prefix):
            with archive.open(_entry(one, prefix), "w", force_zip64=True) as file:
                async for chunk in store.stream(one.key):
                    file.write(chunk)
                    if part := sink.take(_PART):
                        yield part
    yield sink.take(0)


def _entry(one: Stored, prefix: str) -> zipfile.ZipInfo:
    entry = zipfile.ZipInfo(one.key.removeprefix(prefix))
    if one.modified is not None and one.modified.year >= 1980:  # ZIP knows no earlier year
        entry.date_time = one.modified.timetuple()[:6]
    entry.external_attr = 0o644 << 16
    return entry


async def _all(store: ObjectStore, prefix: str) -> AsyncIterator[Stored]:
    after: str | None = None
    while page := await store.list(prefix, after=after, limit=_PAGE):
        for one in page:
            yield one
        if len(page) < _PAGE:
            return
        after = page[-1].key
