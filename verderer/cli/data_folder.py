"""The data folder, and the files in it that belong to no other room: the key, the first login."""

from __future__ import annotations

import json
import os
import secrets
import stat
from dataclasses import dataclass, replace
from pathlib import Path

from verderer.core.errors import Refusal
from verderer.settings import Secret, Settings

_SHORTEST_KEY = 32
_FEWEST_CHARACTERS = 10
_PLACEHOLDERS = ("changeme", "change-me", "change_me", "secret", "password", "example", "default")


def make_data_folder(settings: Settings) -> None:
    """Make the data folder: nobody else may list it.

    For root others may walk through it, as the database's own user has to; every file in it that
    matters is readable by its owner alone.

    Raises:
        Refusal: it cannot be made or written to.
    """
    mode = 0o711 if os.geteuid() == 0 else 0o700
    missing = [
        path for path in (settings.data_dir, *settings.data_dir.parents) if not path.exists()
    ]
    try:
        for path in reversed(missing):
            path.mkdir(exist_ok=True)
            path.chmod(mode)
    except OSError as e:
        raise _unusable(settings.data_dir, e.strerror or str(e)) from e
    if not settings.data_dir.is_dir():
        raise _unusable(settings.data_dir, "it is not a folder")
    if not os.access(settings.data_dir, os.W_OK | os.X_OK):
        raise _unusable(settings.data_dir, "this user may not write there")


def _unusable(folder: Path, why: str) -> Refusal:
    return Refusal(
        f"the data folder {folder} cannot be used: {why}",
        hint="Choose another one: --data-dir, VERDERER_DATA_DIR or the setting data_dir.",
        code="data_dir",
    )


def with_secret_key(settings: Settings) -> Settings:
    """The same settings with `security.secret_key` filled in, made and kept if need be.

    Raises:
        Refusal: the key is weak or readable by others, or there is none and the database is
            shared: a key made here would not be that of the other servers.
    """
    if (given := settings.security.secret_key) is not None:
        _check(given.reveal(), "security.secret_key")
        return settings
    path = settings.data_dir / "secret.key"
    if not path.exists():
        if settings.database.url is not None:
            raise Refusal(
                "security.secret_key is not set, and servers that share a database share a key",
                hint=f"set VERDERER_SECURITY_SECRET_KEY, or put the same key into {path}",
                code="secret_key",
            )
        make_data_folder(settings)
        write_private(path, secrets.token_urlsafe(48), keep=True)
    if path.stat().st_mode & (stat.S_IRWXG | stat.S_IRWXO):
        raise Refusal(f"{path} can be read by others", hint=f"chmod 600 {path}", code="secret_key")
    key = path.read_text(encoding="utf-8").strip()
    _check(key, str(path))
    return replace(settings, security=replace(settings.security, secret_key=Secret(key)))


def _check(key: str, source: str) -> None:
    hint = "python3 -c 'import secrets; print(secrets.token_urlsafe(48))' makes a good one"
    if len(key) < _SHORTEST_KEY:
        raise Refusal(
            f"the key in {source} has {len(key)} characters; {_SHORTEST_KEY} are the least",
            hint=hint,
            code="secret_key",
        )
    guessable = len(set(key)) < _FEWEST_CHARACTERS
    if guessable or any(word in key.lower() for word in _PLACEHOLDERS):
        raise Refusal(f"the key in {source} looks like a placeholder", hint=hint, code="secret_key")


def write_private(path: Path, text: str, *, keep: bool = False) -> None:
    """Write a file that only we may read, whole or not at all.

    `keep` leaves a file alone that another process made first.
    """
    scratch = path.with_name(f".{path.name}.{secrets.token_hex(4)}")
    descriptor = os.open(scratch, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            file.write(text + "\n")
            file.flush()
            os.fsync(file.fileno())
        if keep:
            try:
                path.hardlink_to(scratch)
            except FileExistsError:
                return
        else:
            scratch.replace(path)
    finally:
        scratch.unlink(missing_ok=True)


@dataclass(frozen=True, slots=True)
class FirstLogin:
    """The administrator's first credentials."""

    email: str
    password: str

    def __repr__(self) -> str:
        return f"FirstLogin({self.email!r})"


def leave_first_login(path: Path, login: FirstLogin) -> None:
    """Keep it where only we may read it, until it is shown.

    Raises:
        Refusal: it cannot be written there. The account exists by now, so another way in is named.
    """
    try:
        write_private(path, json.dumps({"email": login.email, "password": login.password}))
    except OSError as e:
        raise Refusal(
            f"the first password cannot be kept in {path}: {e.strerror or e}",
            hint=f"`verderer recover {login.email}` prints another one.",
            code="first_login",
        ) from e


def take_first_login(path: Path) -> FirstLogin | None:
    """Read it and remove it; None if there is none."""
    try:
        kept = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return None
    path.unlink()
    return FirstLogin(kept["email"], kept["password"])
