"""Fetches what a step reads into its working directory, before the program starts.

Files appear under their names only when they are whole, and nothing is ever written through a
link. An object key that ends in `/` stands for everything below it.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Sequence
from typing import Final

from verderer.agent.files.parallel import each
from verderer.agent.files.paths import make_directories, name_of_key_part, parts_of
from verderer.agent.files.transfers import Transfers
from verderer.core.errors import Fault, Invalid, NotFound, Refusal
from verderer.wire.agent import Grant, InputFile

WRITE_BYTES: Final = 1024 * 1024
MAX_FILES: Final = 100_000

_NEW_FILE: Final = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC


class InputUnavailable(Exception):
    """An input will not come, whatever is waited for."""


async def fetch_inputs(transfers: Transfers, workspace: str, inputs: Sequence[InputFile]) -> None:
    """Put every input into `workspace`; an outage of the store is waited out.

    May be called again after a crash: what is there already is replaced.

    Raises:
        InputUnavailable: one does not exist or cannot have the place that it was given.
        Fault: the local disk.
        Superseded: another agent has taken over.
    """
    for one in inputs:
        try:
            if one.key.endswith("/"):
                await _fetch_directory(transfers, workspace, one)
            else:
                await _fetch_file(transfers, workspace, one.key, parts_of(one.path))
        except NotFound as error:
            raise InputUnavailable(f"input {one.name!r} is missing: {error.message}") from error
        except Refusal as error:
            raise InputUnavailable(f"input {one.name!r}: {error.message}") from error
        except OSError as error:
            raise Fault(
                f"input {one.name!r} cannot be written: {error.strerror or error}",
                hint="free space on the disk of the agent's working directories",
            ) from error


async def _fetch_directory(transfers: Transfers, workspace: str, one: InputFile) -> None:
    # The control plane names only what was stored, so that an empty list is an empty folder.
    grants: list[Grant] = []

    async def ask() -> None:
        grants[:] = await transfers.granter.below(one.key)

    await transfers.patiently(f"listing {one.key!r}", ask)
    if len(grants) > MAX_FILES:
        raise Invalid(f"it has {len(grants)} files; the limit is {MAX_FILES}")
    top = parts_of(one.path)
    os.close(await asyncio.to_thread(make_directories, workspace, top))

    async def fetch(grant: Grant) -> None:
        parts = top + _below(one.key, grant.key)
        await _fetch_file(transfers, workspace, grant.key, parts, grant)

    await each(grants, fetch)


def _below(prefix: str, key: str) -> tuple[str, ...]:
    if not key.startswith(prefix):
        raise Invalid(f"object {key[:300]!r} is not below {prefix!r}")
    try:
        names = [name_of_key_part(part) for part in key[len(prefix) :].split("/")]
    except UnicodeDecodeError as error:
        raise Invalid(f"object {key[:300]!r} has no name that a file can have") from error
    if any("/" in name for name in names):
        raise Invalid(f"object {key[:300]!r} has no name that a file can have")
    return parts_of("/".join(names))


async def _fetch_file(
    transfers: Transfers,
    workspace: str,
    key: str,
    parts: tuple[str, ...],
    grant: Grant | None = None,
) -> None:
    directory = await asyncio.to_thread(make_directories, workspace, parts[:-1])
    first = [grant] if grant is not None else []

    async def once() -> None:
        # An address from a long listing may have expired by its turn: the first try only.
        at = first.pop() if first else (await transfers.granter.grant("GET", key)).grant
        async with transfers.reading(at) as content:
            await _save(directory, parts[-1], content, at.size)

    try:
        async with transfers.slots:
            await transfers.patiently(f"fetching {key!r}", once)
    finally:
        os.close(directory)


async def _save(directory: int, name: str, parts: AsyncIterator[bytes], size: int | None) -> None:
    part_name = f".{os.urandom(8).hex()}.part"
    file = os.open(part_name, _NEW_FILE, 0o644, dir_fd=directory)
    try:
        written = 0
        buffer = bytearray()
        async for part in parts:
            buffer += part
            if len(buffer) >= WRITE_BYTES:
                written += await asyncio.to_thread(_write, file, bytes(buffer))
                buffer.clear()
        written += await asyncio.to_thread(_write, file, bytes(buffer))
        if size is not None and written != size:
            raise Fault(f"{written} bytes came instead of {size}")
        _place(directory, part_name, name)
    except BaseException:
        os.unlink(part_name, dir_fd=directory)
        raise
    finally:
        os.close(file)


def _place(directory: int, part_name: str, name: str) -> None:
    try:
        os.rename(part_name, name, src_dir_fd=directory, dst_dir_fd=directory)
    except IsADirectoryError as error:
        raise Invalid(f"there is a folder where the file {name!a} belongs") from error


def _write(file: int, data: bytes) -> int:
    view = memoryview(data)
    while view:
        view = view[os.write(file, view) :]
    return len(data)
