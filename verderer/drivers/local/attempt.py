"""One attempt as this agent knows it: its directory, read again when something happened to it."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from verderer.core.model.attempt import AttemptKey, AttemptState, End, EndCause
from verderer.drivers.contract import Observed
from verderer.drivers.local import remains
from verderer.drivers.local.monitor import kernel, records

_LONGEST_MESSAGE = 2_000
_RESTARTED = "the machine restarted, and nobody saw how it ended"
_VANISHED = "its monitor was killed; what it had started was killed too"


class LocalAttempt:
    """Its order, who claimed it, and what can be said about it now."""

    def __init__(self, key: AttemptKey, home: Path, order: Mapping[str, Any], *, node: str) -> None:
        self.key = key
        self.home = home
        self.order = order
        self.claim: Mapping[str, Any] | None = None
        self.end: Mapping[str, Any] | None = None
        self.observed = Observed(key=key, state=AttemptState.STARTING, node=node)
        self.pidfd = -1
        """Of the monitor, readable once it is dead; the roster closes it."""
        self.monitored = False
        """Whether there is a living monitor to watch."""
        self.settling = False
        """The monitor is dead and its remains are being killed: look again soon."""
        self.sent_at: float | None = None
        """When it was last handed to the spawner, on the monotonic clock."""
        self.sent_times = 0
        self._news = asyncio.Event()

    @property
    def over(self) -> bool:
        return self.observed.state.over

    @property
    def devices(self) -> list[str]:
        """Accelerators that it holds: none once it is over."""
        if self.over:
            return []
        return [name for replica in self.order["replicas"] for name in replica["devices"]]

    def tell(self) -> None:
        """Wake everybody who waits in `news`."""
        self._news.set()
        self._news = asyncio.Event()

    async def news(self, *, timeout_s: float) -> None:
        """Return at the next `tell`, or on time-out."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(timeout_s):
                await self._news.wait()

    def look(self, boot: str) -> None:
        """Read what changed in the directory. `boot` names this boot of the machine."""
        if self.over:
            return
        self.claim = self.claim or records.read(str(self.home), records.CLAIM)
        end = records.read(str(self.home), records.END) or (self.claim or {}).get("end")
        if end is not None:
            self._over(end)
        elif self.order["boot"] != boot:
            self._lose(_RESTARTED)
        elif self.claim is not None:
            self._look_at_monitor(self.claim)

    def ask_to_stop(self, grace_s: float, *, boot: str) -> None:
        """Make it end, whether or not it has begun; a second, longer grace changes nothing.

        Raises:
            OSError: the request cannot be written.
        """
        if self.claim is None and bar(self.home, boot=boot):
            self.look(boot)
            return
        earlier = records.read(str(self.home), records.STOP)
        if earlier is None or grace_s < earlier["grace_s"]:
            records.write(str(self.home), records.STOP, {"grace_s": grace_s}, durable=True)
        self.look(boot)
        if self.pidfd >= 0:
            with contextlib.suppress(ProcessLookupError):
                signal.pidfd_send_signal(self.pidfd, signal.SIGUSR1)

    def give_up(self, message: str, *, boot: str) -> None:
        """End it as not startable, unless a monitor was quicker. Raises OSError."""
        end = _end(EndCause.START, message)
        records.claim(str(self.home), {"boot": boot, "end": end})
        self.look(boot)

    def _look_at_monitor(self, claim: Mapping[str, Any]) -> None:
        if not self._monitor_lives(claim):
            # It may have written its end between our reading and its own death.
            if (end := records.read(str(self.home), records.END)) is not None:
                self._over(end)
                return
            self.settling = remains.kill_remains(self.order, claim["pid"], str(self.home))
            if not self.settling:
                remains.remove_groups(self.order)
                self._lose(_VANISHED)
            return
        running = records.read(str(self.home), records.PROCESSES)
        stopping = records.read(str(self.home), records.STOP) is not None
        state = AttemptState.STARTING if running is None else AttemptState.RUNNING
        self._observe(
            AttemptState.STOPPING if stopping else state,
            started_ms=None if running is None else running["started_ms"],
        )

    def _monitor_lives(self, claim: Mapping[str, Any]) -> bool:
        if self.pidfd < 0:
            with contextlib.suppress(OSError):
                self.pidfd = os.pidfd_open(claim["pid"])
        # Compared after opening: now the descriptor is either the monitor's or nobody's.
        lives: bool = kernel.started_at(claim["pid"]) == claim["started"]
        self.monitored = lives
        return lives

    def _lose(self, message: str) -> None:
        running = records.read(str(self.home), records.PROCESSES) or {}
        end = {**_end(EndCause.LOST, message), "started_ms": running.get("started_ms")}
        if self.claim is None:
            records.claim(str(self.home), {"boot": self.order["boot"], "end": end})
        else:
            records.write(str(self.home), records.END, end, durable=True)
        self._over(end)

    def _over(self, end: Mapping[str, Any]) -> None:
        self.monitored = False
        self.settling = False
        self.end = end
        told = End(
            cause=EndCause(end["cause"]),
            exit_code=end["exit_code"],
            signal=end["signal"],
            message=end["message"][:_LONGEST_MESSAGE],
        )
        self._observe(
            told.state, end=told, started_ms=end.get("started_ms"), ended_ms=end.get("ended_ms")
        )

    def _observe(
        self,
        state: AttemptState,
        *,
        end: End | None = None,
        started_ms: int | None = None,
        ended_ms: int | None = None,
    ) -> None:
        self.observed = Observed(
            key=self.key,
            state=state,
            node=self.observed.node,
            end=end,
            started_ms=self.observed.started_ms if started_ms is None else started_ms,
            ended_ms=ended_ms,
        )


def bar(home: Path, *, boot: str) -> bool:
    """Keep the attempt from ever being started; False when somebody has claimed it.

    Raises:
        OSError: nothing can be written.
    """
    end = _end(EndCause.CANCELLED, "stopped before it was started")
    barred = records.claim(str(home), {"boot": boot, "end": end})
    if barred:
        records.sync_directory(str(home))
    return barred


def _end(cause: EndCause, message: str) -> dict[str, Any]:
    """An end that the agent, not a monitor, establishes."""
    return {
        "cause": cause.value,
        "exit_code": None,
        "signal": None,
        "message": message,
        "ended_ms": time.time_ns() // 1_000_000,
    }
