"""Several processes behind one listening socket."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable
from types import FrameType

import structlog

from verderer.cli.up.role import REFUSED
from verderer.core.errors import Refusal, VerdererError
from verderer.store.embedded.lifeline import die_with_parent

_QUICK_S = 1.0
_PAUSE_S = 0.5

log = structlog.get_logger(__name__)


class Workers:
    """Forks `count` workers, restarts what dies, and ends them all on SIGTERM or SIGINT.

    Made before any thread or event loop exists, as a fork wants.
    """

    def __init__(self, count: int, work: Callable[[], None]) -> None:
        self._count = count
        self._work = work
        self._born: dict[int, float] = {}
        self._ending = False
        self._refused = False

    def run(self) -> None:
        """Return when every worker has ended after a signal.

        Raises:
            Refusal: a worker cannot work as it is configured; the others are ended too.
        """
        self._keep()
        if self._refused:
            raise Refusal(
                "a worker cannot work with these settings",
                hint="It said above what is wrong and what to do.",
                code="settings",
            )

    def _keep(self) -> None:
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, self._end)
        for _ in range(self._count):
            self._fork()
        while self._born:
            try:
                pid, status = os.wait()
            except InterruptedError:
                continue
            except ChildProcessError:
                return
            born = self._born.pop(pid, None)
            if born is None or self._ending:
                continue
            code = os.waitstatus_to_exitcode(status)
            if code == REFUSED:
                self._refused = True
                self._end(signal.SIGTERM, None)
                continue
            log.warning("a worker ended", pid=pid, code=code)
            if time.monotonic() - born < _QUICK_S:
                time.sleep(_PAUSE_S)  # whatever kills it at once will do so again
            self._fork()

    def _fork(self) -> None:
        tie = die_with_parent(signal.SIGKILL)
        pid = os.fork()
        if pid:
            self._born[pid] = time.monotonic()
            return
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, signal.SIG_DFL)
        if tie is not None:
            tie()
        code = 1
        try:
            self._work()
            code = 0
        except VerdererError as e:
            log.error(e.message, hint=e.hint, code=e.code)
            code = REFUSED if isinstance(e, Refusal) else 1
        except Exception:
            log.exception("crashed")
        finally:
            os._exit(code)

    def _end(self, number: int, _frame: FrameType | None) -> None:
        self._ending = True
        for pid in self._born:
            os.kill(pid, number)
