"""The operating-system account that the server runs as: PostgreSQL refuses to run as root."""

from __future__ import annotations

import os
import pwd
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

from verderer.core.errors import Fault

SERVICE_USER = "verderer-postgres"
_FALLBACK_USER = "nobody"


@dataclass(frozen=True, slots=True)
class Account:
    """Who owns the data folder and runs the server."""

    uid: int
    gid: int
    switch: bool
    """True when we are root and must become this user first."""

    @property
    def user(self) -> int | None:
        """The `user` argument of `subprocess`; None leaves the caller's identity alone."""
        return self.uid if self.switch else None

    @property
    def group(self) -> int | None:
        """The `group` argument of `subprocess`."""
        return self.gid if self.switch else None

    @property
    def extra_groups(self) -> list[int] | None:
        """The `extra_groups` argument of `subprocess`: none of root's groups are kept."""
        return [] if self.switch else None

    def own(self, path: Path) -> None:
        """Give `path` itself, never a parent, to this account."""
        if self.switch:
            os.chown(path, self.uid, self.gid, follow_symlinks=False)

    def enters(self, folder: Path) -> bool:
        """Whether this account may walk into `folder`; the kernel is asked, not the mode bits."""
        entered = subprocess.run(
            ["/bin/sh", "-c", 'cd -- "$1"', "sh", str(folder)],
            cwd="/",
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            user=self.user,
            group=self.group,
            extra_groups=self.extra_groups,
            check=False,
        )
        return entered.returncode == 0


def service_account() -> Account:
    """Ourselves, or, for root, a system user without login that is made on first need.

    Raises:
        Fault: the user id has no passwd entry, without which `initdb` refuses to work.
    """
    if os.geteuid() == 0:
        entry = _entry(SERVICE_USER) or _make_service_user() or _entry(_FALLBACK_USER)
        if entry is None:
            raise Fault(
                f"neither {SERVICE_USER} nor {_FALLBACK_USER} exists on this machine and no "
                "user could be made, and PostgreSQL does not run as root",
                hint=f"make the user {SERVICE_USER}, or point database.url at another server",
            )
        return Account(entry.pw_uid, entry.pw_gid, switch=True)
    try:
        own = pwd.getpwuid(os.geteuid())
    except KeyError:
        raise Fault(
            f"user id {os.geteuid()} has no passwd entry, and PostgreSQL does not start without",
            hint="give the user a name, or point database.url at another server",
        ) from None
    return Account(own.pw_uid, own.pw_gid, switch=False)


def _entry(name: str) -> pwd.struct_passwd | None:
    try:
        return pwd.getpwnam(name)
    except KeyError:
        return None


def _make_service_user() -> pwd.struct_passwd | None:
    useradd = shutil.which("useradd", path="/usr/sbin:/sbin:/usr/bin:/bin")
    if useradd is None:
        return None
    # A failure (read-only /etc, another process was first) shows in the lookup that follows.
    subprocess.run(
        [useradd, "--system", "--no-create-home", "--shell", "/usr/sbin/nologin", SERVICE_USER],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        check=False,
    )
    return _entry(SERVICE_USER)
