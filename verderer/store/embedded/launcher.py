"""The embedded server's door: start it, know its address, stop it."""

from __future__ import annotations

import fcntl
import os
import secrets
import signal
import subprocess
import threading
import time
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import IO, Self
from urllib.parse import quote, urlencode

from verderer.core.errors import Conflict, Fault
from verderer.store.embedded import binaries, cluster, home, postmaster
from verderer.store.embedded.account import Account, service_account
from verderer.store.embedded.binaries import Binaries
from verderer.store.embedded.home import Home
from verderer.store.embedded.lifeline import die_with_parent

_RETRY_S = 0.1
_STILL_HELD = ("shared memory block", 'lock file "postmaster.pid" already exists')
"""What a server says that found the children of a killed predecessor still alive."""


def dsn_at(state: Path) -> str:
    """The address of the server whose state folder is `state`, running or not.

    Raises:
        Fault: no server was ever started there.
    """
    try:
        return (state / "dsn").read_text(encoding="utf-8").strip()
    except FileNotFoundError:
        raise Fault(
            f"no embedded database was started in {state}",
            hint="start it with `verderer up` or `verderer postgres`, or set database.url",
        ) from None


@dataclass(frozen=True, slots=True, kw_only=True)
class Launch:
    """How to start a server."""

    bin: Path | None = None
    """The `bin` folder of a PostgreSQL 15 or later; None takes the wheel's."""
    port: int | None = None
    """Also listen on this port of 127.0.0.1; None for the socket alone."""
    options: Mapping[str, str] = field(default_factory=dict)
    """Server settings that win over ours, e.g. `{"fsync": "off"}` for a throw-away server."""
    start_within_s: float = 300.0
    """Recovery after a crash replays up to 4 GB of log before the server is ready."""
    stop_within_s: float = 30.0
    """How long a clean stop may take before the server is stopped the hard way."""
    outside: Path = home.OUTSIDE
    """Where root's server lives if its account cannot enter the state folder."""


class EmbeddedPostgres:
    """One PostgreSQL server as a child of this process, ending when this process does.

    `start` must be called from a thread that lives as long as the server should: the kernel
    stops the server when that thread ends. `on_log` receives the server's log, line by line, on
    a thread of its own.
    """

    def __init__(
        self,
        state: Path,
        launch: Launch | None = None,
        *,
        on_log: Callable[[str], None] | None = None,
    ) -> None:
        self._state = state.expanduser().absolute()
        self._launch = launch or Launch()
        self._on_log = on_log
        self._tail: deque[str] = deque(maxlen=50)
        self._process: subprocess.Popen[str] | None = None
        self._reader: threading.Thread | None = None
        self._lock: int | None = None
        self.home: Home | None = None
        """Where the files are, known once started."""

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.stop()

    @property
    def pid(self) -> int | None:
        """The server's process id while we have one."""
        return self._process.pid if self._process else None

    @property
    def dsn(self) -> str:
        """The address that asyncpg takes; it contains the password."""
        return dsn_at(self._state)

    def alive(self) -> bool:
        """Whether the server process runs."""
        return self._process is not None and self._process.poll() is None

    def start(self) -> str:
        """Start the server, making or mending what needs it; return its address when ready.

        Raises:
            Conflict: another launcher runs this state folder, or its data are of another major
                version.
            Refusal: the given binaries cannot be used.
            Fault: the server did not become ready; its last words are in the message.
        """
        account = service_account()
        place = self.home = home.settle(self._state, account, self._launch.outside)
        self._take_lock()
        try:
            programs = binaries.provide(self._launch.bin, account, place.folder)
            password = self._password(fresh=not place.data.exists())
            durable = self._launch.options.get("fsync", "on") != "off"
            cluster.prepare(place, programs, account, password=password, durable=durable)
            self._serve(place, programs, account)
            return self._record_dsn(place, password)
        except BaseException:
            self.stop()
            raise

    def wait(self, timeout_s: float | None = None) -> int | None:
        """Wait for the server to end; its exit code, or None if it still runs after `timeout_s`."""
        if self._process is None:
            return None
        try:
            return self._process.wait(timeout_s)
        except subprocess.TimeoutExpired:
            return None

    def stop(self) -> None:
        """Stop the server cleanly, by force if it takes too long; harmless if it does not run."""
        if self._process is not None:
            for sign in (signal.SIGINT, signal.SIGQUIT, signal.SIGKILL):
                if self.alive():
                    self._process.send_signal(sign)
                    self.wait(self._launch.stop_within_s)
            self._join_reader()
            self._process = None
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None

    def _take_lock(self) -> None:
        # Held by the open file: it cannot be left behind by a launcher that was killed.
        lock = os.open(self._state / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            holder = os.pread(lock, 32, 0).decode(errors="replace").strip()
            os.close(lock)
            raise Conflict(
                f"process {holder} already runs the database in {self._state}",
                hint="stop it first, or use another data_dir",
                code="postgres_running",
            ) from None
        os.ftruncate(lock, 0)
        os.pwrite(lock, f"{os.getpid()}\n".encode(), 0)
        self._lock = lock

    def _password(self, *, fresh: bool) -> str:
        """The cluster's password, made together with the data folder."""
        path = self._state / "password"
        if fresh:
            _write_private(path, secrets.token_urlsafe(32))
        try:
            return path.read_text(encoding="ascii").strip()
        except FileNotFoundError:
            raise Fault(
                f"{path} is missing, and without it nobody can log in to the database",
                hint="restore that file from a backup of the data_dir",
            ) from None

    def _record_dsn(self, place: Home, password: str) -> str:
        where = urlencode(
            {"host": str(place.run), "port": self._launch.port or 5432}, quote_via=quote, safe="/"
        )
        dsn = f"postgresql://{cluster.ROLE}:{quote(password)}@/{cluster.DATABASE}?{where}"
        _write_private(self._state / "dsn", dsn)
        return dsn

    def _serve(self, place: Home, programs: Binaries, account: Account) -> None:
        deadline = time.monotonic() + self._launch.start_within_s
        while True:
            postmaster.clear(place.data, place.run, within_s=self._launch.stop_within_s)
            self._spawn(place, programs, account)
            if self._becomes_ready(place, deadline):
                return
            self._join_reader()
            words = "\n".join(self._tail)
            held = any(sign in words for sign in _STILL_HELD)
            if self.alive() or not held or time.monotonic() >= deadline:
                raise Fault(f"PostgreSQL did not start: {words or 'it said nothing'}")
            time.sleep(_RETRY_S)

    def _spawn(self, place: Home, programs: Binaries, account: Account) -> None:
        options = cluster.server_options(place, port=self._launch.port, given=self._launch.options)
        settings = [part for name, value in options.items() for part in ("-c", f"{name}={value}")]
        self._tail.clear()
        self._process = subprocess.Popen(
            [programs.program("postgres"), "-D", str(place.data), *settings],
            cwd="/",
            env=cluster.environment(),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            umask=0o077,
            user=account.user,
            group=account.group,
            extra_groups=account.extra_groups,
            # Ctrl-C in a terminal reaches the foreground group: stopping the server is our choice.
            start_new_session=True,
            # SIGINT is the server's clean, fast shutdown. Runs after the change of user, which
            # would undo it.
            preexec_fn=die_with_parent(signal.SIGINT),
        )
        self._reader = threading.Thread(
            target=self._read_log,
            args=(self._process.stdout,),
            name="postgres-log",
            daemon=True,
        )
        self._reader.start()

    def _becomes_ready(self, place: Home, deadline: float) -> bool:
        def settled() -> bool:
            return not self.alive() or self._says_ready(place)

        postmaster.wait_until(settled, within_s=max(0.0, deadline - time.monotonic()))
        return self.alive() and self._says_ready(place)

    def _says_ready(self, place: Home) -> bool:
        found = postmaster.read(place.data)
        return found is not None and found.pid == self.pid and found.status == "ready"

    def _read_log(self, pipe: IO[str]) -> None:
        with pipe:
            for line in pipe:
                self._tail.append(line.rstrip())
                if self._on_log is not None:
                    self._on_log(line.rstrip())

    def _join_reader(self) -> None:
        if self._reader is not None:
            self._reader.join(timeout=5)
            self._reader = None


def _write_private(path: Path, text: str) -> None:
    """Replace the file at once, readable by us alone."""
    scratch = path.with_name(path.name + ".new")
    scratch.unlink(missing_ok=True)
    descriptor = os.open(scratch, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "w", encoding="utf-8") as file:
        file.write(text + "\n")
        file.flush()
        os.fsync(file.fileno())
    scratch.replace(path)
