"""The data folder: made once, in a way that a crash in the middle cannot leave half-made."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path

from verderer.core.errors import Conflict, Fault
from verderer.store.embedded.account import Account
from verderer.store.embedded.binaries import Binaries
from verderer.store.embedded.home import Home

ROLE = "verderer"
DATABASE = "verderer"

_BUILTIN_LOCALES_SINCE = 17


def environment() -> dict[str, str]:
    """What the server's programs may see of ours: messages in English, and no PG… variables."""
    kept = {k: v for k in ("PATH", "LD_LIBRARY_PATH") if (v := os.environ.get(k))}
    return {"LC_ALL": "C", **kept}


def prepare(
    home: Home, binaries: Binaries, account: Account, *, password: str, durable: bool
) -> None:
    """Make the data folder unless it exists.

    Raises:
        Conflict: it was made by another major version of PostgreSQL.
        Fault: `initdb` failed; its own words are in the message.
    """
    if home.data.exists():
        _check_version(home.data, binaries)
        return
    fresh = home.folder / "data.new"
    shutil.rmtree(fresh, ignore_errors=True)
    fresh.mkdir(mode=0o700)
    account.own(fresh)
    _initdb(fresh, binaries, account, password=password, durable=durable)
    _make_database(fresh, binaries, account)
    fresh.rename(home.data)


def _check_version(data: Path, binaries: Binaries) -> None:
    made_by = (data / "PG_VERSION").read_text(encoding="ascii").strip()
    if made_by != str(binaries.major):
        raise Conflict(
            f"{data} was made by PostgreSQL {made_by} and cannot be opened by {binaries.version}",
            hint=(
                f"set postgres.bin to the bin folder of a PostgreSQL {made_by}, "
                "or dump the database with it and restore it into a new data_dir"
            ),
            code="postgres_version",
        )


def _initdb(
    fresh: Path, binaries: Binaries, account: Account, *, password: str, durable: bool
) -> None:
    # The builtin provider gives the same order and case rules on every machine, whatever
    # locales are installed; before 17 the C library's C.UTF-8 comes nearest.
    locale = (
        ["--locale=C", "--locale-provider=builtin", "--builtin-locale=C.UTF-8"]
        if binaries.major >= _BUILTIN_LOCALES_SINCE
        else ["--locale=C.UTF-8"]
    )
    password_file = fresh.with_name("password.new")
    password_file.unlink(missing_ok=True)
    password_file.touch(mode=0o600)
    password_file.write_text(password + "\n", encoding="ascii")
    account.own(password_file)
    try:
        _run(
            [
                binaries.program("initdb"),
                f"--pgdata={fresh}",
                "--encoding=UTF8",
                *locale,
                f"--username={ROLE}",
                "--auth=scram-sha-256",
                f"--pwfile={password_file}",
                "--data-checksums",
                "--no-instructions",
                *([] if durable else ["--no-sync"]),
            ],
            account,
        )
    finally:
        password_file.unlink(missing_ok=True)


def _make_database(fresh: Path, binaries: Binaries, account: Account) -> None:
    """Create our database in single-user mode: no server, no port, no password needed."""
    _run(
        [binaries.program("postgres"), "--single", "-D", str(fresh), "postgres"],
        account,
        said=f"CREATE DATABASE {DATABASE}\n",
    )


def _run(command: list[str], account: Account, *, said: str = "") -> None:
    done = subprocess.run(
        command,
        cwd="/",
        env=environment(),
        input=said,
        capture_output=True,
        text=True,
        errors="replace",
        umask=0o077,
        user=account.user,
        group=account.group,
        extra_groups=account.extra_groups,
        check=False,
    )
    if done.returncode != 0:
        program = Path(command[0]).name
        raise Fault(f"{program} failed ({done.returncode}): {done.stderr.strip()[-2000:]}")


def server_options(home: Home, *, port: int | None, given: Mapping[str, str]) -> dict[str, str]:
    """The server's settings, which win over the files in the data folder; `given` wins over all."""
    return {
        "listen_addresses": "127.0.0.1" if port else "",
        "port": str(port or 5432),
        "unix_socket_directories": str(home.run),
        "unix_socket_permissions": "0700",
        "shared_preload_libraries": "pg_stat_statements",
        "shared_buffers": "128MB",
        "max_connections": "100",
        "wal_compression": "on",
        "max_wal_size": "4GB",
        "checkpoint_timeout": "15min",
        "fsync": "on",
        "synchronous_commit": "on",
        # Short statements by the thousand: compiling them costs more than it gains, and parallel
        # workers need more of /dev/shm than a container usually has.
        "jit": "off",
        "max_parallel_workers_per_gather": "0",
        "timezone": "UTC",
        "log_timezone": "UTC",
        "log_line_prefix": "",
        "log_lock_waits": "on",
        "log_checkpoints": "off",
        # A client that died without closing must not hold locks for the two hours of the kernel.
        "idle_in_transaction_session_timeout": "60s",
        "tcp_keepalives_idle": "60",
        "tcp_keepalives_interval": "10",
        "tcp_keepalives_count": "3",
        "client_connection_check_interval": "10s",
        **given,
    }
