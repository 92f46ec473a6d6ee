"""Stores what a step declared as its outputs, after the program has succeeded.

A file goes to the output's key; a folder's files go below it, names percent-encoded where a key
cannot hold them. Links count as what they lead to, as long as that lies in the working directory.
"""

from __future__ import annotations

import asyncio
import hashlib
import os
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass
from typing import Final

from verderer.agent.files.parallel import each
from verderer.agent.files.paths import MAX_DEPTH, Found, key_part, open_inside, parts_of
from verderer.agent.files.transfers import Transfers
from verderer.core.errors import Fault, Invalid, NotFound, Refusal
from verderer.objects.keys import check_key
from verderer.wire.agent import OutputFile, StoredOutput

READ_BYTES: Final = 1024 * 1024
MAX_FILES: Final = 100_000


class OutputUnavailable(Exception):
    """A declared output is not there or cannot be stored, whatever is waited for."""


@dataclass(frozen=True, slots=True)
class _File:
    path: str
    """Relative to the working directory."""
    relative: str
    """Relative to the output, in the form of a key."""


@dataclass(frozen=True, slots=True)
class _Stored:
    size: int
    sha256: str


async def store_outputs(
    transfers: Transfers, workspace: str, outputs: Sequence[OutputFile]
) -> list[StoredOutput]:
    """Store every output and say what it amounts to; an outage of the store is waited out.

    The SHA-256 of a folder is that of its manifest: for each file, by key, its own digest in hex,
    two spaces, its key below the folder, and a line feed.

    Raises:
        OutputUnavailable: one is missing, leads out of the workspace, or the store refuses it.
        Superseded: another agent has taken over.
    """
    stored: list[StoredOutput] = []
    for one in outputs:
        try:
            stored.append(await _store(transfers, workspace, one))
        except NotFound as error:
            raise OutputUnavailable(
                f"output {one.name!r} is missing: the step did not write {one.path!r}"
                if error.code == "no_such_output"
                else f"output {one.name!r} could not be stored: {error.message}"
            ) from error
        except Refusal as error:
            raise OutputUnavailable(
                f"output {one.name!r} could not be stored: {error.message}"
            ) from error
        except OSError as error:
            raise OutputUnavailable(
                f"output {one.name!r} cannot be read: {error.strerror or error}"
            ) from error
    return stored


async def _store(transfers: Transfers, workspace: str, one: OutputFile) -> StoredOutput:
    path = "/".join(parts_of(one.path))
    files = await asyncio.to_thread(_list, workspace, path)
    if files is None:
        done = await _store_file(transfers, workspace, path, one.key.rstrip("/"))
        return StoredOutput(name=one.name, key=one.key, size=done.size, sha256=done.sha256)
    prefix = one.key.rstrip("/") + "/"
    results = await _store_all(transfers, workspace, prefix, files)
    manifest = hashlib.sha256()
    for file, done in sorted(results, key=lambda pair: pair[0].relative):
        manifest.update(f"{done.sha256}  {file.relative}\n".encode())
    return StoredOutput(
        name=one.name,
        key=prefix,
        size=sum(done.size for _, done in results),
        files=len(results),
        sha256=manifest.hexdigest(),
    )


async def _store_all(
    transfers: Transfers, workspace: str, prefix: str, files: list[_File]
) -> list[tuple[_File, _Stored]]:
    results: list[tuple[_File, _Stored]] = []

    async def store(file: _File) -> None:
        done = await _store_file(transfers, workspace, file.path, prefix + file.relative)
        results.append((file, done))

    await each(files, store)
    return results


async def _store_file(transfers: Transfers, workspace: str, path: str, key: str) -> _Stored:
    check_key(key)
    found = await asyncio.to_thread(_open_output, workspace, path)
    try:
        if found.is_directory:
            raise Invalid(f"{path!a} has become a folder")
        size = found.status.st_size
        digest = hashlib.sha256()

        def body() -> AsyncIterator[bytes]:
            nonlocal digest
            digest = hashlib.sha256()
            return _read(found.fd, size, lambda part: digest.update(part))

        async with transfers.slots:
            await transfers.put(key, size, body)
        return _Stored(size, digest.hexdigest())
    finally:
        os.close(found.fd)


async def _read(fd: int, size: int, seen: Callable[[bytes], None]) -> AsyncIterator[bytes]:
    offset = 0
    while offset < size:
        part = await asyncio.to_thread(_read_part, fd, offset, min(READ_BYTES, size - offset), seen)
        if not part:
            raise Fault("the file became shorter while it was stored")
        offset += len(part)
        yield part


def _read_part(fd: int, offset: int, count: int, seen: Callable[[bytes], None]) -> bytes:
    part = os.pread(fd, count, offset)
    seen(part)
    return part


def _open_output(workspace: str, path: str) -> Found:
    try:
        return open_inside(workspace, path)
    except NotFound as error:
        error.code = "no_such_output"
        raise


def _list(workspace: str, path: str) -> list[_File] | None:
    """Every file of a folder; None when `path` is a file."""
    top = _open_output(workspace, path)
    try:
        if not top.is_directory:
            return None
        files: list[_File] = []
        _walk(workspace, top, path, (), files, [])
        return files
    finally:
        os.close(top.fd)


def _walk(
    workspace: str,
    folder: Found,
    path: str,
    below: tuple[str, ...],
    files: list[_File],
    above: list[tuple[int, int]],
) -> None:
    identity = (folder.status.st_dev, folder.status.st_ino)
    if identity in above or len(below) >= MAX_DEPTH:
        raise Invalid(f"the folder {path[:200]!a} contains itself, or is too deep")
    with os.scandir(folder.fd) as entries:
        names = sorted(entry.name for entry in entries)
    for name in names:
        inner = open_inside(workspace, name, directory_fd=folder.fd)
        try:
            if inner.is_directory:
                _walk(
                    workspace,
                    inner,
                    f"{path}/{name}",
                    (*below, name),
                    files,
                    [*above, identity],
                )
                continue
        finally:
            os.close(inner.fd)
        if len(files) >= MAX_FILES:
            raise Invalid(f"the folder has more than {MAX_FILES} files")
        relative = "/".join(key_part(part) for part in (*below, name))
        files.append(_File(f"{path}/{name}", relative))
