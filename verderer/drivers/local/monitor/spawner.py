"""Forks one monitor per attempt, quickly and for little memory.

The agent starts it as a bare interpreter and writes keys of attempts to its socket. One monitor is
always forked ahead and waits there for a key, since forking costs more than the rest of a start.
All of them end when the agent does, except monitors that have a key: each of those is in a
session of its own and does not notice.
"""

from __future__ import annotations

import gc
import os
import signal
import sys

from verderer.drivers.local.monitor import kernel
from verderer.drivers.local.monitor.monitor import Monitor

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import NoReturn

_KEY_BYTES = 4096
_ALL_DONE = b"."


def main(channel: int, root: str) -> None:
    """Serve keys from a SOCK_SEQPACKET socket until its other end closes."""
    kernel.name_process("verderer-spawn")
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # the kernel reaps the monitors for us
    for number in (signal.SIGINT, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    os.umask(0o077)
    boot = kernel.boot_id()
    # Nothing that exists now is garbage; unvisited, its pages stay shared with the monitors.
    gc.disable()
    gc.freeze()
    said = b""
    while said != _ALL_DONE:
        # The monitor alone holds the writing end: it closes when it takes a key, or dies.
        taken, taking = os.pipe2(os.O_CLOEXEC)
        if os.fork() == 0:
            os.close(taken)
            _monitor(channel, taking, root, boot)
        os.close(taking)
        said = os.read(taken, 1)
        os.close(taken)


def _monitor(channel: int, taking: int, root: str, boot: str) -> NoReturn:
    code = 1
    try:
        os.setsid()
        kernel.name_process("verderer-watch")
        monitor = Monitor(root, boot)
        key = os.read(channel, _KEY_BYTES)
        os.write(taking, b"" if key else _ALL_DONE)
        os.close(taking)
        os.close(channel)
        if key:
            monitor.run(key.decode())
        code = 0
    except BaseException:  # noqa: BLE001 - there is nobody above us: say it and be found dead
        sys.__excepthook__(*sys.exc_info())  # `traceback` would cost every monitor 1 MB
    finally:
        os._exit(code)
