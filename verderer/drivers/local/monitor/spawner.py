"""Forks one monitor per attempt, quickly and for little memory.

The agent starts it as a bare interpreter and writes keys of attempts to its socket. It ends when
the agent does; the monitors, each in a session of its own, do not notice.
"""

from __future__ import annotations

import gc
import os
import signal
import sys
import traceback

from verderer.drivers.local.monitor import kernel
from verderer.drivers.local.monitor.monitor import Monitor

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import NoReturn

_KEY_BYTES = 4096


def main(channel: int, root: str) -> None:
    """Serve keys from a SOCK_SEQPACKET socket until its other end closes."""
    kernel.name_process("verderer-spawn")
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # the kernel reaps the monitors for us
    for number in (signal.SIGINT, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    # Nothing that exists now is garbage; unvisited, its pages stay shared with the monitors.
    gc.disable()
    gc.freeze()
    while key := os.read(channel, _KEY_BYTES):
        if os.fork() == 0:
            os.close(channel)
            _monitor(root, key.decode("ascii"))


def _monitor(root: str, key: str) -> NoReturn:
    code = 1
    try:
        os.setsid()
        kernel.name_process("verderer-watch")
        Monitor(root, key).run()
        code = 0
    except BaseException:  # noqa: BLE001 - there is nobody above us: say it and be found dead
        traceback.print_exc(file=sys.stderr)
    finally:
        os._exit(code)
