"""Where things lie below the driver's root directory."""

from __future__ import annotations

import contextlib
import shutil
from dataclasses import dataclass
from pathlib import Path

from verderer.core.model.attempt import AttemptKey
from verderer.drivers.local.monitor.poke import FIFO

PRIVATE = 0o700


@dataclass(frozen=True, slots=True)
class Layout:
    """Names of the root's parts. Nothing below it is readable by other users."""

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

    @property
    def pokes(self) -> Path:
        return self.root / FIFO

    @property
    def spawner_log(self) -> Path:
        return self.root / "spawner.log"

    def home(self, key: AttemptKey) -> Path:
        """The attempt's directory; the key is typed, so no name can lead elsewhere."""
        return self.attempts / str(key)

    def work(self, key: AttemptKey) -> Path:
        return self.home(key) / "work"

    def log(self, key: AttemptKey, replica: int) -> Path:
        return self.home(key) / "log" / str(replica)

    def make(self) -> None:
        """Create what is missing. Raises OSError."""
        for directory in (self.root, self.attempts, self.trash):
            directory.mkdir(mode=PRIVATE, parents=True, exist_ok=True)
            directory.chmod(PRIVATE)

    def known(self) -> list[AttemptKey]:
        """Keys of the attempts that have a directory."""
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
