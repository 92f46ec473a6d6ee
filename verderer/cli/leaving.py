"""How a process of ours ends: at once, without taking the interpreter to pieces."""

from __future__ import annotations

import atexit
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def ends_at_once() -> Iterator[None]:
    """End the process with the exit code of what is done within, once exit handlers have run.

    The object store's client lets go of Python objects on threads of its own, some instants after
    it has answered. A thread that does so while the interpreter is being taken to pieces aborts
    the whole process, whose work was done (PyO3/pyo3-async-runtimes, issue 40). Exit handlers run
    before that, the one that was registered first as the last of them.
    """
    codes = [1]
    atexit.register(lambda: _end(codes[-1]))
    try:
        yield
    except SystemExit as e:
        codes.append(e.code if isinstance(e.code, int) else int(e.code is not None))
        raise
    codes.append(0)


def _end(code: int) -> None:
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except (OSError, ValueError):
            code = code or 1
    os._exit(code)
