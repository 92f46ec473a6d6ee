"""The `local` driver: attempts are processes of the agent's own user on this machine."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from pathlib import Path

from verderer.core.errors import Conflict, Fault, NotFound
from verderer.core.model.attempt import AttemptKey
from verderer.core.model.resources import Resources
from verderer.drivers.contract import LogPiece, NodeFacts, Observed, Order
from verderer.drivers.local import gpus, logreader, orders
from verderer.drivers.local.attempt import LocalAttempt, bar
from verderer.drivers.local.layout import PRIVATE, Layout
from verderer.drivers.local.leases import Leases
from verderer.drivers.local.machine import Machine
from verderer.drivers.local.monitor import lease, records
from verderer.drivers.local.roster import Roster

SPOOL_BYTES = 256 * 1024 * 1024
PIDS = 32_768
_FOLLOW_S = 5.0
"""Longest wait for a poke about new output before looking anyway."""
_KILL_S = 10.0
"""What killing everything that an attempt has started takes on a busy machine."""


class LocalDriver:
    """Keeps everything it must remember below `root`; see `docs/local-cluster.md`.

    A new driver over the same root takes over what an earlier one left. Only one at a time may
    use a root: the second gets a `Fault`.
    """

    kind = "local"
    stops_within_s = lease.GRACE_S + lease.LOOK_S + _KILL_S

    def __init__(
        self,
        root: Path,
        *,
        capacity: Resources | None = None,
        cgroup: str = "auto",
        spool_bytes: int = SPOOL_BYTES,
        environment: Mapping[str, str] | None = None,
        find_devices: Callable[[], Sequence[gpus.Device]] = gpus.find_devices,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Touches nothing yet.

        `capacity` replaces what the machine says of itself, accelerators excepted: they are
        never more than were found. `cgroup` is `auto`, `off`, or an empty version 2 cgroup
        directory that is ours. `spool_bytes` of output are kept per attempt until released.
        `environment` is where PATH, HOME, LANG come from, the agent's own by default. `clock`
        counts seconds.
        """
        self._layout = Layout(root.absolute())
        self._spool_bytes = spool_bytes
        self._environment = orders.base_environment(
            os.environ if environment is None else environment
        )
        self._machine = Machine(self._layout.root, capacity, cgroup, find_devices)
        self._roster = Roster(self._layout, node=self._machine.name, clock=clock)
        self._leases = Leases(self._layout.root)

    async def observe(self) -> Sequence[Observed]:
        """Every attempt with a directory here. Only what changed since the last call is read."""
        return self._open().observed()

    async def changed(self, *, timeout_s: float) -> None:
        """Return when a monitor began, ended or died since the last `observe`, or on time-out."""
        await self._open().changed(timeout_s=timeout_s)

    async def start(self, order: Order, *, workspace: str) -> None:
        """Write the order down and have a monitor forked for it; see the contract.

        Raises:
            Refusal: it can never run here.
            Fault: no disk, no process, or no free device at the moment.
        """
        roster = self._open()
        if roster.get(order.key) is not None:
            return
        orders.check(order)
        term = self._leases.term  # that of now: whatever is waited for below may outlast it
        work = self._layout.work(order.key)
        if workspace and Path(workspace) != work:
            raise Conflict(f"{workspace} is not the working directory of {order.key}")
        wanted = {name: n for name, n in order.requests.items() if gpus.is_device(name)}
        devices = await self._machine.devices() if wanted else ()
        if roster.get(order.key) is not None:  # somebody was quicker while we looked
            return
        chosen = gpus.take(devices, roster.busy_devices(), wanted, replicas=order.nodes)
        try:
            self._write_down(order, chosen, term)
        except OSError as problem:
            raise Fault(f"the order cannot be written: {problem}") from problem
        roster.accept(order.key)

    async def stop(self, key: AttemptKey, *, grace_s: float) -> None:
        """Make it end, or make sure that it never begins; it is observed as cancelled then.

        Raises:
            Fault: the request cannot be written.
        """
        roster = self._open()
        try:
            attempt = roster.get(key)
            if attempt is None:
                attempt = self._bar(key)
            elif not attempt.over:
                attempt.ask_to_stop(grace_s, boot=roster.boot)
        except OSError as problem:
            raise Fault(f"{key} cannot be stopped: {problem}") from problem
        roster.touched(key)

    async def forget(self, key: AttemptKey) -> None:
        """Remove its directory with the working directory and the logs.

        Raises:
            Conflict: it has not ended.
        """
        roster = self._open()
        attempt = roster.get(key)
        if attempt is not None and not attempt.over:
            raise Conflict(f"{key} has not ended", hint="stop it first")
        roster.drop(key)
        try:
            await self._discard(key)
        except OSError as problem:
            raise Fault(f"{key} cannot be removed: {problem}") from problem

    def now(self) -> float:
        """Seconds since boot, sleep included."""
        return lease.now()

    async def renew(self, until: float) -> None:
        """Tell the monitors of leased attempts; each reads it when what it knows is over.

        Raises:
            Fault: it cannot be written; leased work ends when the last one is over.
        """
        self._open()
        try:
            self._leases.renew(until)
        except OSError as problem:
            raise Fault(f"the lease cannot be written: {problem}") from problem

    async def nodes(self) -> Sequence[NodeFacts]:
        """This machine. The label `verderer.dev/limits` says which limits are enforced."""
        self._open()
        return [await self._machine.facts()]

    async def logs(self, key: AttemptKey, *, replica: int, after: int) -> AsyncIterator[LogPiece]:
        """Output from byte `after` on; stdout and stderr are one stream.

        Raises:
            NotFound: there is no such attempt.
            Fault: the disk does not give the output back.
        """
        roster = self._open()
        attempt = roster.get(key)
        if attempt is None:
            raise NotFound(f"there is no attempt {key} here")
        reader = logreader.LogReader(self._layout.log(key, replica), after)
        try:
            while True:
                # Asked before reading: what is written until the end is then surely read.
                over = attempt.over
                pieces = reader.read()
                if over and not pieces:
                    pieces = reader.rest(*_log_end(attempt, replica))
                for piece in pieces:
                    yield piece
                if over and not pieces:
                    return
                if not pieces:
                    await attempt.news(timeout_s=_FOLLOW_S)
                    roster.look(key)
        except OSError as problem:
            raise Fault(f"the output of {key} cannot be read: {problem}") from problem
        finally:
            reader.close()

    async def release_logs(self, key: AttemptKey, *, replica: int, upto: int) -> None:
        """Delete what is safe elsewhere: segments whose bytes all lie before offset `upto`."""
        attempt = self._open().get(key)
        if attempt is not None:
            logreader.release(self._layout.log(key, replica), upto, complete=attempt.over)

    async def prepare(self, order: Order) -> str:
        """Make the empty working directory; that of an attempt which was ordered is left alone.

        Raises:
            Fault: it cannot be made.
        """
        roster = self._open()
        work = self._layout.work(order.key)
        if roster.get(order.key) is not None or (work.parent / records.CLAIM).exists():
            return str(work)
        try:
            if work.exists():  # of an earlier life that did not get as far as the order
                await self._discard(order.key)
            work.mkdir(mode=PRIVATE, parents=True)
            work.parent.chmod(PRIVATE)
        except OSError as problem:
            raise Fault(f"the working directory cannot be made: {problem}") from problem
        return str(work)

    def workspace(self, key: AttemptKey) -> str | None:
        """Path of an existing working directory, or None."""
        work = self._layout.work(key)
        return str(work) if work.is_dir() else None

    async def close(self) -> None:
        """Let go of the root; what runs goes on, and the next driver finds it."""
        self._roster.close()
        self._machine.close()

    def _open(self) -> Roster:
        if not self._roster.opened:
            self._roster.open()
            self._machine.open(self._roster.unfinished())
            self._leases.open(self._roster.boot)
        return self._roster

    def _write_down(self, order: Order, devices: Sequence[list[str]], term: int) -> None:
        home = self._layout.home(order.key)
        for directory in (home, home / "work", home / "tmp"):
            directory.mkdir(mode=PRIVATE, parents=True, exist_ok=True)
        if order.script:
            orders.write_script(home, order.script)
        terms = orders.Terms(
            boot=self._roster.boot,
            limits=self._machine.limits,
            base_env=self._environment,
            spool_bytes=self._spool_bytes,
            pids=PIDS,
            term=term,
        )
        records.write(str(home), records.ORDER, orders.compose(order, home, terms, devices))

    async def _discard(self, key: AttemptKey) -> None:
        """Out of sight at once, off the disk in a thread. Raises OSError."""
        gone = self._layout.discard(key, unique=time.time_ns())
        if gone is not None:
            await asyncio.to_thread(self._layout.empty, gone)

    def _bar(self, key: AttemptKey) -> LocalAttempt:
        """Keep an attempt from ever starting. Raises OSError."""
        home = self._layout.home(key)
        home.mkdir(mode=PRIVATE, parents=True, exist_ok=True)
        bar(home, boot=self._roster.boot)
        # The claim stands first: an order alone would be carried out by whoever finds it.
        records.write(str(home), records.ORDER, orders.nothing(key, self._roster.boot))
        return self._roster.add(key)


def _log_end(attempt: LocalAttempt, replica: int) -> tuple[int, str]:
    """Bytes that the replica wrote and why the last are missing; (0, "") when nobody counted."""
    logs = (attempt.end or {}).get("logs", [])
    return (logs[replica]["bytes"], logs[replica]["hole"]) if replica < len(logs) else (0, "")
