"""After the programs ended: nothing of them stays, no byte is lost, and the end is told."""

from __future__ import annotations

import os
import select
import signal
import time

from verderer.drivers.local.monitor import kernel, records
from verderer.drivers.local.monitor.replica import CLOSED

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any

    from verderer.drivers.local.monitor.replica import Replica

_KILL_AGAIN_S = 0.02
_DRAIN_S = 5.0
"""How long a pipe may stay open after everything was killed: someone outside may hold it."""
_DRAIN_PAUSE_S = 0.005
_RETRY_END_S = 1.0


def kill_remains(replicas: Sequence[Replica], wake: int, reap: Callable[[], None]) -> None:
    """End what the programs left behind; returns once it is gone.

    We are a subreaper, so all of it is below us: killing our children until there are none kills
    theirs too. `wake` is readable when a child ends, `reap` takes in those that did.
    """
    while True:
        reap()
        for replica in replicas:
            replica.group.kill()
        left = kernel.children()
        if not left:
            return
        for pid in left:
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
        select.select([wake], [], [], _KILL_AGAIN_S)
        try:
            os.read(wake, 4096)
        except BlockingIOError:
            pass


def drain(replicas: Sequence[Replica]) -> None:
    """Move what is still in the pipes into the logs."""
    until = time.monotonic() + _DRAIN_S
    while (now := time.monotonic()) < until:
        open_ones = [replica for replica in replicas if replica.output != CLOSED]
        if not open_ones:
            return
        paused = [replica for replica in open_ones if not replica.log.wants(now)]
        moved = [replica.pump() for replica in open_ones if replica not in paused]
        if paused or any(moved):
            until = now + _DRAIN_S
        if not any(moved):
            time.sleep(_DRAIN_PAUSE_S)


def publish(end: dict[str, Any], home: str, reserved: records.Reserved | None) -> None:
    """Write the end down for good, however long the disk takes to have room for it."""
    while True:
        try:
            if reserved is not None:
                reserved.publish(end, durable=True)
            else:
                records.write(home, records.END, end, durable=True)
        except OSError:
            time.sleep(_RETRY_END_S)  # better an end told late than none
        else:
            return
