"""Each role a process of its own over an external PostgreSQL and a real S3 server."""

from __future__ import annotations

import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlsplit, urlunsplit

import pytest

from tests.chaos.platform import free_port, wait_for
from tests.e2e.commands import clean_environment
from tests.objects import servers
from tests.rig.folders import reachable_folder
from verderer.store.embedded.launcher import EmbeddedPostgres, Launch

BUCKET = "apart"
KEY = "a key for tests that nobody else has, and long enough"


@dataclass
class Role:
    """One process and what it wrote."""

    process: subprocess.Popen[bytes]
    log: Path

    @property
    def said(self) -> str:
        return self.log.read_text(errors="replace")

    def end(self) -> int:
        self.process.terminate()
        try:
            return self.process.wait(60)
        except subprocess.TimeoutExpired:
            self.process.kill()
            raise


@dataclass
class Outside:
    """What stands outside: a database, a bucket, and the settings that lead to them."""

    folder: Path
    database: EmbeddedPostgres
    dsn: str
    s3: servers.Server
    environment: dict[str, str]
    roles: list[Role] = field(default_factory=list)

    def command(self, *words: str, **changes: str) -> subprocess.CompletedProcess[str]:
        """Run a command to its end with these settings; a change to "" takes one away."""
        return subprocess.run(
            [sys.executable, "-P", "-m", "verderer.cli.main", *words],
            env=self.environment | changes,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )

    def start(self, role: str, **changes: str) -> Role:
        """Start a role; it is ended with everything else."""
        log = self.folder / f"{role}-{len(self.roles)}.log"
        with log.open("wb") as out:
            process = subprocess.Popen(
                [sys.executable, "-P", "-m", "verderer.cli.main", role],
                env=self.environment | changes,
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=subprocess.STDOUT,
            )
        started = Role(process, log)
        self.roles.append(started)
        return started

    def start_server(self, **changes: str) -> str:
        """One more server, ready; its address."""
        port = free_port()
        url = f"http://127.0.0.1:{port}"
        role = self.start("server", VERDERER_SERVER_PORT=str(port), **changes)

        def ready() -> bool:
            assert role.process.poll() is None, role.said
            return answers(f"{url}/readyz")

        wait_for(ready, 90, "a server is ready")
        return url


def answers(url: str, headers: Mapping[str, str] | None = None) -> bool:
    """Whether a GET is answered with 200."""
    try:
        request = urllib.request.Request(url, headers=dict(headers or {}))
        with urllib.request.urlopen(request, timeout=10) as answer:
            return bool(answer.status == 200)
    except (urllib.error.URLError, OSError):
        return False


def oldest_postgres() -> Path | None:
    """The oldest PostgreSQL that will do, where it is installed; else the newest, as everywhere."""
    found = Path("/usr/lib/postgresql/15/bin")
    return found if (found / "postgres").exists() else None


def over_tcp(dsn: str, port: int) -> str:
    """The same server's address, as a machine elsewhere writes it."""
    parts = urlsplit(dsn)
    place = f"{parts.username}:{parts.password}@127.0.0.1:{port}"
    return urlunsplit(parts._replace(netloc=place, query=""))


@contextmanager
def outside() -> Iterator[Outside]:
    """Start both servers; whatever roles a test starts end with them."""
    if servers.versitygw_binary() is None:
        pytest.skip("NOT TESTED over a real S3 server: no versitygw binary on PATH")
    with ExitStack() as stack:
        folder = stack.enter_context(reachable_folder())
        port = free_port()
        database = EmbeddedPostgres(folder / "outside", Launch(port=port, bin=oldest_postgres()))
        stack.enter_context(database)
        (folder / "s3").mkdir()
        s3 = stack.enter_context(servers.versitygw(folder / "s3"))
        dsn = over_tcp(database.dsn, port)
        settings = {
            "VERDERER_DATA_DIR": str(folder / "data"),
            "VERDERER_DATABASE_URL": dsn,
            "VERDERER_OBJECTS_URL": f"s3://{BUCKET}/some/prefix",
            "VERDERER_OBJECTS_ENDPOINT": s3.endpoint,
            "VERDERER_OBJECTS_ACCESS_KEY": servers.ACCESS_KEY,
            "VERDERER_OBJECTS_SECRET_KEY": servers.SECRET_KEY,
            "VERDERER_SECURITY_SECRET_KEY": KEY,
            "VERDERER_LOCAL_CLUSTER_ENABLED": "true",
        }
        environment = clean_environment(folder / "home") | settings
        there = Outside(folder, database, dsn, s3, environment)
        try:
            yield there
        finally:
            for role in reversed(there.roles):
                if role.process.poll() is None:
                    role.end()
