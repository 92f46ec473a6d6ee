"""The folders of one embedded server, made so that its account can reach them."""

from __future__ import annotations

import hashlib
import os
import stat
import tempfile
from dataclasses import dataclass
from pathlib import Path

from verderer.core.errors import Refusal
from verderer.store.embedded.account import Account

OUTSIDE = Path("/var/lib/verderer")
"""Where root's server keeps its files if the state folder lies where its account cannot go."""

_SOCKET_PATH_LIMIT = 107
"""Bytes that a Unix socket's path may have on Linux (`sun_path` less its final zero)."""
_LONGEST_SOCKET_NAME = "/.s.PGSQL.65535"


@dataclass(frozen=True, slots=True)
class Home:
    """Where one server's files are."""

    folder: Path
    """Holds the data and, if need be, the binaries: the state folder, or one outside it."""
    run: Path
    """Holds the socket."""

    @property
    def data(self) -> Path:
        return self.folder / "data"


def settle(state: Path, account: Account, outside: Path = OUTSIDE) -> Home:
    """Make the folders of the server whose state folder is `state`.

    Root's home is closed to other users, and a parent's mode is not ours to change: there the
    files go to a folder under `outside`, and the link `state/home` remembers which.
    """
    _make(state, account)
    link = state / "home"
    if link.is_symlink():
        folder = link.resolve(strict=True)
    elif account.enters(state):
        folder = state
    else:
        outside.mkdir(mode=0o755, parents=True, exist_ok=True)
        folder = Path(tempfile.mkdtemp(prefix="postgres-", dir=outside))
        link.symlink_to(folder)
    _make(folder, account)
    return Home(folder, _run_folder(folder, account))


def _make(folder: Path, account: Account) -> None:
    """Make `folder`: ours alone, or for root one that its server can walk through but not list."""
    mode = 0o711 if account.switch else 0o700
    missing = [path for path in (folder, *folder.parents) if not path.exists()]
    for path in reversed(missing):
        path.mkdir(exist_ok=True)
        path.chmod(mode)
    if stat.S_IMODE(folder.stat().st_mode) != mode:
        folder.chmod(mode)


def _run_folder(home: Path, account: Account) -> Path:
    run = home / "run"
    if len(os.fsencode(run)) + len(_LONGEST_SOCKET_NAME) > _SOCKET_PATH_LIMIT:
        # The name must be the same after every start: clients keep the address.
        digest = hashlib.sha256(os.fsencode(home)).hexdigest()[:16]
        run = Path(_short_parent(account), f"verderer-{account.uid}-{digest}")
    run.mkdir(mode=0o700, exist_ok=True)
    found = run.lstat()
    # In a shared folder somebody else may have made it first, to listen in our server's place.
    if not stat.S_ISDIR(found.st_mode) or found.st_uid not in (os.geteuid(), account.uid):
        raise Refusal(
            f"{run} exists and belongs to somebody else",
            hint="remove it, or choose a shorter data_dir",
            code="postgres_run_folder",
        )
    run.chmod(0o700)
    account.own(run)
    return run


def _short_parent(account: Account) -> str:
    if account.switch:
        return "/run" if os.access("/run", os.W_OK) else "/tmp"  # noqa: S108 ownership is checked
    return os.environ.get("XDG_RUNTIME_DIR") or "/tmp"  # noqa: S108 ownership is checked
