"""Database and bucket behind TLS with an authority of their own."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.chaos.platform import free_port
from tests.e2e.apart import KEY, oldest_postgres, over_tcp
from tests.e2e.commands import VERDERER, clean_environment
from tests.rig.folders import reachable_folder
from verderer.cli.up.role import REFUSED
from verderer.store.embedded.account import service_account
from verderer.store.embedded.launcher import EmbeddedPostgres, Launch

pytestmark = [pytest.mark.chaos, pytest.mark.timeout(180), pytest.mark.xdist_group("chaos")]

_NEW = ("-newkey", "rsa:2048", "-nodes")


def openssl(folder: Path, *words: str) -> None:
    subprocess.run(["openssl", *words], cwd=folder, check=True, capture_output=True)


def make_certificates(folder: Path) -> None:
    """An authority, and a certificate of this machine that it signed."""
    openssl(folder, "req", "-x509", *_NEW, "-keyout", "ca.key", "-out", "ca.crt", "-subj", "/CN=us")
    openssl(folder, "req", *_NEW, "-keyout", "own.key", "-out", "own.csr", "-subj", "/CN=localhost")
    (folder / "names").write_text("subjectAltName=DNS:localhost,IP:127.0.0.1")
    authority = ("-CA", "ca.crt", "-CAkey", "ca.key", "-CAcreateserial")
    named = ("-in", "own.csr", "-out", "own.crt", "-extfile", "names")
    openssl(folder, "x509", "-req", *named, *authority)
    account = service_account()
    if account.user is not None:
        os.chown(folder / "own.key", account.uid, -1)


@pytest.fixture(scope="module")
def settings() -> Iterator[dict[str, str]]:
    binaries = oldest_postgres()
    if binaries is None or shutil.which("openssl") is None:
        pytest.skip("NOT TESTED over TLS: needs openssl, and a PostgreSQL 15 built with it")
    with ExitStack() as stack:
        folder = stack.enter_context(reachable_folder())
        make_certificates(folder)
        port = free_port()
        files = {"ssl_cert_file": str(folder / "own.crt"), "ssl_key_file": str(folder / "own.key")}
        launch = Launch(port=port, bin=binaries, options={"ssl": "on", **files})
        database = stack.enter_context(EmbeddedPostgres(folder / "outside", launch))
        yield clean_environment(folder / "home") | {
            "VERDERER_DATA_DIR": str(folder / "data"),
            "VERDERER_DATABASE_URL": over_tcp(database.dsn, port) + "?sslmode=verify-full",
            "VERDERER_SECURITY_SECRET_KEY": KEY,
            "PGSSLROOTCERT": str(folder / "ca.crt"),
            "FOLDER": str(folder),
        }


def command(settings: dict[str, str], *words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*VERDERER, *words],
        env=settings,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


def test_a_database_of_an_own_authority(settings: dict[str, str]) -> None:
    done = command(settings, "migrate")
    assert done.returncode == 0, done.stderr
    backup = str(Path(settings["FOLDER"]) / "backup")
    done = command(settings, "backup", backup)
    assert done.returncode == 0, done.stderr
    assert command(settings, "restore", "--check", backup).returncode == 0


@pytest.mark.parametrize("root", ["/etc/ssl/certs/ca-certificates.crt", ""])
def test_an_authority_that_nobody_named_is_refused_with_the_remedy(
    settings: dict[str, str], root: str
) -> None:
    done = command(settings | {"PGSSLROOTCERT": root}, "migrate")
    assert done.returncode == REFUSED
    last = json.loads(done.stderr.strip().splitlines()[-1])
    assert "the certificate of PostgreSQL at 127.0.0.1" in last["event"]
    assert "sslrootcert=FILE" in last["hint"]
