"""`artifacts RUN[/STEP] [download]`: what steps left behind."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, BinaryIO

import typer

from verderer.cli.commands import contexts
from verderer.cli.commands.remote import API, ask, client_of, collect, patiently, run, the_run
from verderer.cli.commands.why import TargetArgument
from verderer.cli.screen.printing import Format, OutputOption, print_document, print_table
from verderer.cli.screen.tables import Column
from verderer.cli.screen.terminal import Tone, clean, say
from verderer.cli.screen.words import ago, counted, size
from verderer.core.errors import Conflict, Invalid, NotFound

if TYPE_CHECKING:
    from verderer.wire.client import ApiClient
    from verderer.wire.object_client import ObjectClient
    from verderer.wire.runs import ArtifactFile, ArtifactOut

_MOST_FILES = 100_000
_AT_ONCE = 4
_SHOW_EVERY = 8 * 1024 * 1024


class Action(StrEnum):
    """What to do with the artifacts."""

    LIST = "list"
    DOWNLOAD = "download"


def artifacts(
    target: TargetArgument,
    action: Annotated[Action, typer.Argument(help="What to do with them.")] = Action.LIST,
    name: Annotated[str, typer.Option("--name", help="This one alone. (default: all)")] = "",
    to: Annotated[
        Path, typer.Option("--to", help="Folder to put STEP/ARTIFACT in; made if need be.")
    ] = Path(),
    force: Annotated[bool, typer.Option("--force", help="Replace files that are there.")] = False,
    output: OutputOption = Format.TABLE,
) -> None:
    """List what the steps of a run left behind, or fetch it.

    `download` writes each step's newest artifacts as files below a folder.
    """
    if action is Action.DOWNLOAD:
        files, amount = run(_download(target, name, to, force))
        say(f"{counted(files, 'file')}, {size(amount)}, in {clean(str(to))}/", Tone.GOOD)
        return
    found, _ = ask(lambda client: _find(client, target), doing="Listing artifacts")
    found = [one for one in found if name in ("", one.name)]
    if output is not Format.TABLE:
        print_document(found, output)
    else:
        _print(found)


def _print(found: list[ArtifactOut]) -> None:
    now = datetime.now(UTC)
    columns = [
        Column(title="STEP", shrinks=True),
        Column(title="ARTIFACT", shrinks=True),
        Column(title="TRY", right=True, rank=3),
        Column(title="SIZE", right=True),
        Column(title="FILES", right=True, rank=1),
        Column(title="AGE", right=True, rank=2),
    ]
    rows = [
        [
            one.step,
            one.name + ("/" if one.folder else ""),
            str(one.attempt),
            size(one.size),
            str(one.files),
            ago(one.created_at, now),
        ]
        for one in found
    ]
    print_table(columns, rows, empty="It has left nothing behind.")


async def _find(client: ApiClient, target: str) -> tuple[list[ArtifactOut], str]:
    from verderer.wire.runs import ArtifactOut
    from verderer.wire.users import Listing

    name, _, step = target.partition("/")
    found = await the_run(client, name)
    path = f"{API}/runs/{found}/artifacts"
    page = await client.get(path, Listing[ArtifactOut], step=step or None)
    return page.items, found


@dataclass(slots=True)
class _Progress:
    """Shows on a terminal how much has come."""

    total: int
    done: int = 0
    _shown: int = -_SHOW_EVERY

    def add(self, amount: int) -> None:
        self.done += amount
        if sys.stderr.isatty() and self.done - self._shown >= _SHOW_EVERY:
            self._shown = self.done
            sys.stderr.write(f"\r{size(self.done)} of {size(self.total)}\x1b[K")
            sys.stderr.flush()

    def close(self) -> None:
        if sys.stderr.isatty():
            sys.stderr.write("\r\x1b[K")


async def _download(target: str, name: str, to: Path, force: bool) -> tuple[int, int]:
    from verderer.wire.object_client import ObjectClient

    context = contexts.logged_in()
    async with (
        client_of(context) as client,
        ObjectClient(context.url, ca_file=context.ca_file or None) as objects,
    ):
        async with patiently("Looking for the artifacts"):
            found, run_id = await _find(client, target)
            wanted = _newest([one for one in found if name in ("", one.name)])
            if not wanted:
                raise NotFound("there is no such artifact", hint=f"verderer artifacts {run_id}")
        progress = _Progress(sum(one.size for one in wanted))
        files = 0
        try:
            for one in wanted:
                files += await _fetch(client, objects, run_id, one, to, force, progress)
        finally:
            progress.close()
    return files, progress.done


def _newest(found: list[ArtifactOut]) -> list[ArtifactOut]:
    newest: dict[tuple[int, str], ArtifactOut] = {}
    for one in found:
        known = newest.get((one.index, one.name))
        if known is None or known.attempt < one.attempt:
            newest[one.index, one.name] = one
    return list(newest.values())


async def _fetch(
    client: ApiClient,
    objects: ObjectClient,
    run_id: str,
    one: ArtifactOut,
    to: Path,
    force: bool,
    progress: _Progress,
) -> int:
    """Write the files of one artifact, a few at a time; their number comes back."""
    import asyncio
    from urllib.parse import quote

    from verderer.wire.runs import ArtifactFile

    base = f"/runs/{run_id}/artifacts/{one.index}/{one.attempt}/{quote(one.name, safe='')}/files"
    files, _ = await collect(client, base, ArtifactFile, most=_MOST_FILES)
    lanes = asyncio.Semaphore(_AT_ONCE)

    async def fetch(file: ArtifactFile) -> None:
        path = _place(to, one, file)
        async with lanes:
            await _write(objects, file.url, path, force, progress)

    tasks = [asyncio.create_task(fetch(file)) for file in files]
    try:
        await asyncio.gather(*tasks)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
    return len(files)


def _place(to: Path, one: ArtifactOut, file: ArtifactFile) -> Path:
    """Where a file goes: always below the folder, whatever it is called.

    Raises:
        Invalid: its name would lead out of the folder.
    """
    from urllib.parse import unquote

    inside = [unquote(part) for part in file.path.split("/")] if file.path else []
    parts = [one.step, one.name, *inside]
    if any(p in ("", ".", "..") or "/" in p or "\0" in p or os.sep in p for p in parts):
        raise Invalid(f"the artifact holds a file of the odd name {clean(file.path)!r}")
    return to.joinpath(*parts)


async def _write(
    objects: ObjectClient, url: str, path: Path, force: bool, progress: _Progress
) -> None:
    """Fetch to a file beside it first, so that a broken download leaves nothing half done."""
    with _beside(path, force=force) as file:
        async with objects.get(url) as body:
            async for data in body:
                file.write(data)
                progress.add(len(data))


@contextlib.contextmanager
def _beside(path: Path, *, force: bool) -> Iterator[BinaryIO]:
    """A file that takes the place of `path` once all of it is written."""
    if path.exists() and not force:
        raise Conflict(f"{path} is there already", hint="--force replaces it")
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_name(path.name[:200] + ".part")
    try:
        with part.open("wb") as file:
            yield file
        part.replace(path)
    except BaseException:
        part.unlink(missing_ok=True)
        raise
