"""A real PgBouncer in transaction mode before a database."""

from __future__ import annotations

import os
import re
import shutil
import socket
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlsplit, urlunsplit

import pytest

from tests.chaos.platform import free_port, wait_for

_OLDEST = (1, 21)
"""From here on it keeps prepared statements apart in transaction mode."""

CONFIG = """
[databases]
{database} = host=127.0.0.1 port={port} dbname={database} user={user} password={password}
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = {own}
unix_socket_dir =
auth_type = any
pool_mode = transaction
max_prepared_statements = 200
default_pool_size = {size}
max_client_conn = 200
server_check_delay = 0
logfile =
pidfile =
"""


def find() -> str:
    """The program, new enough; the test is skipped where there is none."""
    program = shutil.which("pgbouncer")
    if program is None:
        pytest.skip("NOT TESTED behind a pooler: no pgbouncer on PATH")
    said = subprocess.run([program, "--version"], capture_output=True, text=True, check=False)
    found = re.search(r"PgBouncer (\d+)\.(\d+)", said.stdout)
    if found is None or (int(found[1]), int(found[2])) < _OLDEST:
        pytest.skip(f"NOT TESTED behind a pooler: {said.stdout.strip()} is older than 1.21")
    return program


@contextmanager
def pooling(program: str, folder: Path, dsn: str, *, size: int) -> Iterator[str]:
    """Run one with so few connections that clients share them; the address to use instead."""
    parts, own = urlsplit(dsn), free_port()
    given = {"user": parts.username, "password": parts.password, "port": parts.port}
    config = folder / "pgbouncer.ini"
    config.write_text(CONFIG.format(database=parts.path[1:], own=own, size=size, **given))
    config.chmod(0o644)
    user = "nobody" if os.geteuid() == 0 else None
    process = subprocess.Popen(
        [program, "--quiet", str(config)], user=user, stdin=subprocess.DEVNULL, cwd="/"
    )
    try:
        wait_for(lambda: _listens(own), 20, "the pooler listens")
        yield urlunsplit(parts._replace(netloc=f"{parts.username}@127.0.0.1:{own}"))
    finally:
        process.kill()
        process.wait()


def _listens(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0
