"""What a backup's folder holds, and whether it is whole.

`manifest.json` is written last: a folder without one is no backup. It knows the dump and the
listing by their SHA-256, and the listing knows each object by its own.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Final

import msgspec

from verderer.core.errors import Invalid
from verderer.objects.copying import Known

FORMAT: Final = 1
MANIFEST: Final = "manifest.json"
DUMP: Final = "database.dump"
LISTING: Final = "objects.jsonl"
OBJECTS: Final = "objects"
_BLOCK: Final = 1 << 20
_ROWS: Final = 1_000


class Part(msgspec.Struct, frozen=True):
    """One file of the folder."""

    size: int
    sha256: str


class Manifest(msgspec.Struct, frozen=True, kw_only=True):
    """Everything about a backup but its content."""

    format: int
    made_at: str
    """UTC, ISO 8601."""
    release: str
    postgres: int
    """Major version of the server."""
    migrations: list[str]
    database: Part
    listing: Part
    objects: int
    bytes: int
    """Of all objects."""
    copied: bool
    """Whether the objects are in the folder; else they are listed with their sizes."""


def part_of(path: Path) -> Part:
    """Read the file and say what it is."""
    digest, size = hashlib.sha256(), 0
    with path.open("rb") as file:
        while block := file.read(_BLOCK):
            digest.update(block)
            size += len(block)
    return Part(size, digest.hexdigest())


def write_manifest(folder: Path, manifest: Manifest) -> None:
    """Make the folder a backup."""
    text = msgspec.json.format(msgspec.json.encode(manifest), indent=2)
    scratch = folder / f".{MANIFEST}"
    scratch.write_bytes(text + b"\n")
    scratch.rename(folder / MANIFEST)


def read_manifest(folder: Path) -> Manifest:
    """Read it and look whether the two files are as it says.

    Raises:
        Invalid: the folder is no backup, one of a newer release, or damaged.
    """
    try:
        manifest = msgspec.json.decode((folder / MANIFEST).read_bytes(), type=Manifest)
    except FileNotFoundError:
        hint = "A backup that was broken off has none: make another one."
        raise Invalid(f"{folder} holds no {MANIFEST}", hint=hint, code="backup") from None
    except (msgspec.MsgspecError, OSError) as e:
        raise Invalid(f"{folder / MANIFEST} cannot be read: {e}", code="backup") from e
    if manifest.format != FORMAT:
        hint = "Restore it with the release that made it."
        message = f"the backup is of format {manifest.format}, and {FORMAT} is known here"
        raise Invalid(message, hint=hint, code="backup")
    for name, known in ((DUMP, manifest.database), (LISTING, manifest.listing)):
        if not (folder / name).is_file() or part_of(folder / name) != known:
            hint = "Take another backup: this one was damaged after it was made."
            raise Invalid(f"{folder / name} is not what was written", hint=hint, code="backup")
    return manifest


def read_listing(folder: Path) -> Iterator[list[Known]]:
    """All objects, a thousand at a time, in key order."""
    with (folder / LISTING).open("rb") as file:
        while lines := list(islice(file, _ROWS)):
            yield [msgspec.json.decode(line, type=Known) for line in lines]
