"""The `up` command: locks the data folder, runs the supervisor, speaks to the person."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import os
import signal
import socket
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from verderer.cli.data_folder import make_data_folder, take_first_login, with_secret_key
from verderer.cli.listening import cannot_listen
from verderer.cli.up import lock, plan
from verderer.cli.up.left_running import steps_left_running
from verderer.cli.up.role import RoleSpec
from verderer.cli.up.stream import LogStream
from verderer.cli.up.supervisor import Supervisor
from verderer.settings import Settings
from verderer.telemetry import logs

_PORT_FREES_WITHIN_S = 1.0
"""The server of an `up` that was killed an instant ago is still being taken down."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Up:
    """What the person asked for."""

    settings: Settings
    config: Path | None
    flags: Mapping[str, object]
    agent: bool = True


def up(asked: Up) -> None:
    """Run the platform until a signal ends it.

    Raises:
        Conflict: another `up` runs on the data folder.
        Refusal: the port is taken, or the secret key cannot be used.
        Fault: a process does not start.
    """
    settings = asked.settings
    make_data_folder(settings)
    with lock.hold(settings.data_dir):
        with_secret_key(settings)
        _check_port(settings)
        terminal = sys.stderr.isatty()
        text = settings.log.format == "text" or (settings.log.format == "auto" and terminal)
        colours = text and terminal and not os.environ.get("NO_COLOR")
        stream = LogStream(text=text, colours=colours)
        logs.configure(
            role="up",
            format="text" if text else "json",
            level=settings.log.level,
            stream=stream.voice("up"),
            colours=colours,
        )
        environment = plan.environment(
            settings,
            base=os.environ,
            config=asked.config,
            flags=asked.flags,
            text=text,
            colours=colours,
        )
        stages = plan.stages(settings, environment, agent=asked.agent)
        asyncio.run(_supervise(stages, stream, settings))


async def _supervise(stages: list[list[RoleSpec]], stream: LogStream, settings: Settings) -> None:
    supervisor = Supervisor(stages, stream, on_ready=lambda: _welcome(settings))
    loop = asyncio.get_running_loop()
    for sign in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        loop.add_signal_handler(sign, supervisor.stop)
    await supervisor.run()
    if count := steps_left_running(settings.data_dir):
        steps = "1 step goes on" if count == 1 else f"{count} steps go on"
        _say(f"Stopped. {steps} running here; the next `verderer up` picks up what they did.")
    else:
        _say("Stopped.")


def _check_port(settings: Settings) -> None:
    """Refuse a taken port now: its owner might even answer that it is ready in our place."""
    host, port = settings.server.host, settings.server.port
    deadline = time.monotonic() + _PORT_FREES_WITHIN_S
    while True:
        try:
            address = socket.getaddrinfo(host or None, port, type=socket.SOCK_STREAM)[0]
            with socket.socket(address[0], address[1]) as probe:
                probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
                probe.bind(address[4])
        except OSError as e:
            if e.errno == errno.EADDRINUSE and time.monotonic() < deadline:
                time.sleep(0.05)
                continue
            raise cannot_listen(host, port, e) from e
        return


def _welcome(settings: Settings) -> None:
    _say(f"Verderer is ready at {settings.public_url}")
    _say(f"Data: {settings.data_dir}")
    outside = settings.postgres_dir / "home"
    if settings.database.url is None and outside.is_symlink():
        _say(f"Database: {outside.resolve()}, where its own user can reach it")
    if (login := take_first_login(settings.data_dir / plan.FIRST_LOGIN)) is not None:
        _say(f"First login: {login.email}  one-time password: {login.password}")
        _say("This password is shown once and must be changed at the first login.")
    _say("Ctrl-C stops it; running steps go on and are picked up at the next start.")


def _say(line: str) -> None:
    # The person may have closed the terminal; that is no reason to fall over.
    with contextlib.suppress(OSError, ValueError):
        print(line, flush=True)
