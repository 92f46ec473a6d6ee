"""The tie between a child process and the one that started it: the child does not outlive it."""

from __future__ import annotations

import ctypes
import os
import signal
import sys
from collections.abc import Callable

_PR_SET_PDEATHSIG = 1


def die_with_parent(sign: signal.Signals) -> Callable[[], None] | None:
    """A `preexec_fn` that has the kernel send `sign` to the child when our thread ends.

    The signal follows the thread that starts the child, so start it from one that lives as long
    as the process. Only Linux has this; elsewhere the answer is None.
    """
    if sys.platform != "linux":
        return None
    # Loaded before the fork: between fork and exec nothing may take a lock.
    prctl = ctypes.CDLL(None, use_errno=True).prctl
    parent = os.getpid()

    def tie() -> None:
        prctl(_PR_SET_PDEATHSIG, int(sign), 0, 0, 0)
        if os.getppid() != parent:  # it died before the tie was made
            os.kill(os.getpid(), sign)

    return tie
