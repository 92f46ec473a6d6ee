"""Where things lie below the shared folder, and how they are written there."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import secrets
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from verderer.core.model.attempt import AttemptKey
from verderer.drivers.slurm.node import step

PRIVATE: Final = 0o700
ORDER: Final = "order.json"
JOB: Final = "job.json"
CLAIM: Final = "claim.json"
STOP: Final = "stop.json"
END: Final = "end.json"
SCRIPT: Final = "script"
BATCH: Final = "job.sh"
OUTPUT: Final = "slurm.out"
"""What the batch script and Slurm itself say; the program's output lies in `log/RANK`."""

_PROGRAM: Final = Path(step.__file__).read_bytes()
_PROGRAM_HASH: Final = hashlib.sha256(_PROGRAM).hexdigest()[:12]


@dataclass(frozen=True, slots=True)
class Layout:
    """Names of the folder's parts. Nothing below it is readable by other users."""

    root: Path

    @property
    def attempts(self) -> Path:
        return self.root / "attempts"

    @property
    def trash(self) -> Path:
        return self.root / "trash"

    @property
    def lock(self) -> Path:
        return self.root / "lock"

    def home(self, key: AttemptKey) -> Path:
        """The attempt's directory; the key is typed, so no name can lead elsewhere."""
        return self.attempts / str(key)

    def work(self, key: AttemptKey) -> Path:
        return self.home(key) / "work"

    def log(self, key: AttemptKey, replica: int) -> Path:
        return self.home(key) / "log" / str(replica)

    def make(self) -> None:
        """Create what is missing. Raises OSError."""
        for directory in (self.root, self.attempts, self.trash, self.root / "bin"):
            directory.mkdir(mode=PRIVATE, parents=True, exist_ok=True)
            directory.chmod(PRIVATE)

    @property
    def program(self) -> Path:
        """Our program on the nodes; each version has a name of its own."""
        return self.root / "bin" / f"step-{_PROGRAM_HASH}.py"

    def install(self) -> None:
        """Put the program of the nodes into the folder. Raises OSError."""
        if not self.program.exists():
            scratch = self.program.with_name(f".{self.program.name}.{os.getpid()}")
            scratch.write_bytes(_PROGRAM)
            scratch.replace(self.program)

    def known(self) -> list[AttemptKey]:
        """Keys of the attempts that have a directory. Raises OSError."""
        keys = []
        for entry in self.attempts.iterdir():
            with contextlib.suppress(ValueError):
                keys.append(AttemptKey.parse(entry.name))
        return keys

    def discard(self, key: AttemptKey, *, unique: int) -> Path | None:
        """Take the attempt out of sight at once; `empty` removes the bytes at leisure."""
        target = self.trash / f"{key}.{unique}"
        try:
            self.home(key).rename(target)
        except FileNotFoundError:
            return None
        return target

    def empty(self, path: Path | None = None) -> None:
        """Remove a discarded directory, or all that an earlier life left in the trash."""
        for discarded in [path] if path else list(self.trash.iterdir()):
            shutil.rmtree(discarded, ignore_errors=True)


def read(home: Path, name: str) -> dict[str, Any] | None:
    """A document of an attempt, or None when there is none or it is no document."""
    try:
        found = json.loads((home / name).read_bytes())
    except (OSError, ValueError, RecursionError):
        return None
    return found if isinstance(found, dict) else None


def write(home: Path, name: str, document: Mapping[str, Any], *, durable: bool = True) -> None:
    """Write a document whole or not at all. Raises OSError.

    One that is not `durable` may be gone after a crash of the file server.
    """
    scratch = home / f".{name}.{os.getpid()}"
    write_bytes(scratch, json.dumps(document).encode(), durable=durable)
    scratch.replace(home / name)
    if durable:
        sync(home)


def write_bytes(path: Path, data: bytes, *, mode: int = 0o600, durable: bool = True) -> None:
    """Write, and flush to the disk. Raises OSError."""
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW, mode)
    with os.fdopen(descriptor, "wb") as file:
        file.write(data)
        if durable:
            file.flush()
            os.fsync(file.fileno())


def bar(home: Path) -> bool:
    """Claim an attempt so that no job can; False when one has. Raises OSError."""
    home.mkdir(mode=PRIVATE, parents=True, exist_ok=True)
    # A name of its own each time: the claim is this very file, and must never be written again.
    scratch = home / f".bar.{secrets.token_hex(8)}"
    write_bytes(scratch, b'{"barred": true}')
    try:
        (home / CLAIM).hardlink_to(scratch)
    except FileExistsError:
        return (read(home, CLAIM) or {}).get("barred") is True
    finally:
        scratch.unlink(missing_ok=True)
        sync(home)
    return True


def sync(directory: Path) -> None:
    """Flush a directory's entries to the disk; file systems that cannot are left alone."""
    with contextlib.suppress(OSError):
        descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
