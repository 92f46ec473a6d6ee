"""Real S3 servers for the tests, each a process of its own on a free loopback port."""

from __future__ import annotations

import http.client
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path

from verderer.objects.config import ObjectsConfig

ACCESS_KEY = "AKVERDERERTEST"
SECRET_KEY = "a-secret-that-must-never-be-printed"
START_DEADLINE_S = 60.0


@dataclass(frozen=True)
class Server:
    """One S3 server that answers."""

    name: str
    endpoint: str
    pid: int = 0

    def pause(self) -> None:
        """Stop answering, as a machine does that hangs."""
        os.kill(self.pid, signal.SIGSTOP)

    def resume(self) -> None:
        os.kill(self.pid, signal.SIGCONT)

    def config(self, url: str, **changes: str) -> ObjectsConfig:
        given = {"access_key": ACCESS_KEY, "secret_key": SECRET_KEY, **changes}
        return ObjectsConfig(
            url=url, endpoint=self.endpoint, region="us-east-1", allow_http=True, **given
        )


def free_port() -> int:
    with closing(socket.socket()) as sock:
        sock.bind(("127.0.0.1", 0))
        port: int = sock.getsockname()[1]
        return port


@contextmanager
def moto() -> Iterator[Server]:
    """Speaks all of the protocol but checks no signature."""
    port = free_port()
    command = [sys.executable, "-m", "moto.server", "-H", "127.0.0.1", "-p", str(port)]
    with _running("moto", command, port, {}) as server:
        yield server


def versitygw_binary() -> str | None:
    return shutil.which("versitygw")


@contextmanager
def versitygw(folder: Path) -> Iterator[Server]:
    """Checks signatures; keeps objects as plain files."""
    binary = versitygw_binary()
    assert binary is not None
    port = free_port()
    for name in ("data", "versions"):
        (folder / name).mkdir()
    command = [binary, "--port", f"127.0.0.1:{port}", "--quiet", "posix"]
    command += ["--versioning-dir", str(folder / "versions"), str(folder / "data")]
    secrets = {"ROOT_ACCESS_KEY": ACCESS_KEY, "ROOT_SECRET_KEY": SECRET_KEY}
    with _running("versitygw", command, port, secrets) as server:
        yield server


@contextmanager
def _running(
    name: str, command: list[str], port: int, environment: Mapping[str, str]
) -> Iterator[Server]:
    process = subprocess.Popen(
        command,
        env={**os.environ, **environment},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        _await_answer(process, name, port)
        yield Server(name, f"http://127.0.0.1:{port}", process.pid)
    finally:
        process.send_signal(signal.SIGCONT)
        process.terminate()
        try:
            process.wait(10)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait(10)


def _await_answer(process: subprocess.Popen[bytes], name: str, port: int) -> None:
    deadline = time.monotonic() + START_DEADLINE_S
    while time.monotonic() < deadline:
        assert process.poll() is None, f"{name} ended with {process.returncode}"
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=2)
        try:
            connection.request("GET", "/")
            connection.getresponse().read()
        except OSError:
            time.sleep(0.05)  # nothing announces that a foreign server listens
        else:
            return
        finally:
            connection.close()
    raise AssertionError(f"{name} did not answer within {START_DEADLINE_S} s")
