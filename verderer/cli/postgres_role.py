"""The `postgres` role: the embedded database as a supervised process of its own."""

from __future__ import annotations

import contextlib
import os
import re
import signal
import sys
import threading

import structlog

from verderer.cli.data_folder import make_data_folder
from verderer.cli.up.role import READY_VARIABLE
from verderer.core.errors import Fault, Refusal
from verderer.settings import Settings
from verderer.store.embedded.launcher import EmbeddedPostgres, Launch

log = structlog.get_logger()

_SEVERITY = re.compile(r"(?P<severity>[A-Z]+):\s+(?P<text>.*)")
_LEVELS = {
    # A failed statement is its client's business, who gets the error too.
    "ERROR": "warning",
    "WARNING": "warning",
    # The end of one session, not of the server.
    "FATAL": "warning",
    "PANIC": "critical",
}
# What every start and stop says. Recovery, waits for locks and the like are not among them.
_ROUTINE = re.compile(
    r"starting PostgreSQL|listening on|database system (was shut down at|is (ready|shut down))"
    r"|received (fast|smart) shutdown|aborting any active|background worker|shutting down"
    r"|could not send data to client|connection to client lost"
)


def run(settings: Settings) -> None:
    """Serve until a signal ends it.

    Raises:
        Refusal: `database.url` is set, or the binaries or the data cannot be used.
        Fault: the server did not start, or ended by itself.
    """
    if settings.database.url is not None:
        raise Refusal("database.url is set, so the embedded database is not used")
    make_data_folder(settings)
    for sign in (signal.SIGTERM, signal.SIGINT):
        signal.signal(sign, _leave)
    launch = Launch(bin=settings.postgres.bin, port=settings.postgres.port)
    server = EmbeddedPostgres(settings.postgres_dir, launch, on_log=_retell)
    try:
        server.start()
        log.info("database is ready", server_pid=server.pid)
        say_ready()
        ended = threading.Event()
        threading.Thread(target=_wait, args=(server, ended), daemon=True).start()
        ended.wait()
        raise Fault("the database server ended by itself")
    finally:
        server.stop()


def _wait(server: EmbeddedPostgres, ended: threading.Event) -> None:
    server.wait()
    ended.set()


def say_ready() -> None:
    """Tell the supervisor, if there is one."""
    descriptor = os.environ.get(READY_VARIABLE, "")
    if descriptor.isdigit():
        with contextlib.suppress(OSError), os.fdopen(int(descriptor), "w") as supervisor:
            supervisor.write("ready\n")


def _leave(_signal: int, _frame: object) -> None:
    # Stopping has begun: another signal must not break it off.
    for sign in (signal.SIGTERM, signal.SIGINT):
        signal.signal(sign, signal.SIG_IGN)
    sys.exit(0)


def _retell(line: str) -> None:
    found = _SEVERITY.match(line)
    severity, text = (found["severity"], found["text"]) if found else ("LOG", line)
    level = "debug" if _ROUTINE.match(text) else _LEVELS.get(severity, "info")
    getattr(log, level)(text, logger="postgres")
