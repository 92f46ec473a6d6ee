"""Watches one attempt from its claim to its end, and writes down what was true."""

from __future__ import annotations

import os
import select
import signal
import time

from verderer.drivers.local.monitor import aftermath, endings, kernel, records
from verderer.drivers.local.monitor.cgroup import Group
from verderer.drivers.local.monitor.launch import Program
from verderer.drivers.local.monitor.lease import OVER, Lease
from verderer.drivers.local.monitor.poke import Pokes
from verderer.drivers.local.monitor.replica import CLOSED, Replica
from verderer.drivers.local.monitor.spool import LogWriter

_RESERVE_BYTES = 16_384
_STALLED_S = 0.05
_KILL_AGAIN_S = 1.0


class Monitor:
    """Lives exactly as long as its attempt; nobody waits for it or feeds it."""

    def __init__(self, root: str, boot: str) -> None:
        """Get ready for an attempt that is not known yet. `boot` names this boot."""
        self._root, self._boot = root, boot
        self._poll = select.poll()
        self._wake = _wake_on_signals()
        self._poll.register(self._wake, select.POLLIN)
        self._claim = {"boot": boot, "pid": os.getpid(), "started": kernel.started_at(os.getpid())}
        self._replicas: list[Replica] = []
        self._failed: int | None = None
        self._why = ""
        self._detail = ""
        self._kill_at: float | None = None
        self._deadline: float | None = None
        self._started_ms: int | None = None
        self._end_record: records.Reserved | None = None
        kernel.adopt_orphans()

    def run(self, key: str) -> None:
        """Claim the attempt, run it, write its end; nothing when somebody has claimed it."""
        self._key = key
        self._home = os.path.join(self._root, "attempts", key)
        self._pokes = Pokes(self._root, key)
        order = records.read(self._home, records.ORDER)
        if order is None or order["boot"] != self._claim["boot"]:
            return
        if not records.claim(self._home, self._claim):
            return
        self._order = order
        # An order of an earlier release says nothing about leases.
        self._lease = Lease(self._root, self._boot, term=order.get("term"))
        try:
            self._start()
        except OSError as problem:
            self._end(endings.START, f"it could not be started: {problem}", grace_s=0.0)
        self._watch()
        self._finish()

    def _start(self) -> None:
        # After a power cut the directory must still be there, or the work would start again.
        records.sync_directory(self._home)
        records.sync_directory(os.path.dirname(self._home))
        self._end_record = records.Reserved(self._home, records.END, _RESERVE_BYTES)
        self._processes = records.Reserved(self._home, records.PROCESSES, _RESERVE_BYTES)
        self._check_stop()
        self._check_lease()
        if self._why:
            return
        for rank in range(len(self._order["replicas"])):
            self._add(rank)
        for replica in self._replicas:
            replica.start()
            self._poll.register(replica.trouble_pipe, select.POLLIN)
        if self._order["timeout_s"] is not None:
            self._deadline = time.monotonic() + self._order["timeout_s"]

    def _add(self, rank: int) -> None:
        order = self._order
        group = Group(order["cgroup"]["version"], order["cgroup"]["bases"], f"{self._key}.{rank}")
        env = {**order["env"], **order["replicas"][rank]["env"]}
        logs = os.path.join(self._home, "log")
        log = LogWriter(
            os.path.join(logs, str(rank)),
            limit=order["spool_bytes"] // len(order["replicas"]),
        )
        self._replicas.append(Replica(Program(order["argv"], env, order["directory"]), group, log))
        group.create(**order["limits"])

    def _watch(self) -> None:
        while any(replica.alive or replica.waiting for replica in self._replicas):
            ready = {fd for fd, _ in self._poll.poll(self._patience_ms())}
            if self._wake in ready:
                self._on_signals()
            for replica in self._replicas:
                if replica.waiting and replica.trouble_pipe in ready:
                    self._hear(replica)
            self._pump(ready)
            self._on_clock(time.monotonic())

    def _patience_ms(self) -> int:
        """Until when to sleep: the nearest of everything that time alone brings."""
        now = time.monotonic()
        due = [at for at in (self._deadline, self._kill_at, self._pokes.due) if at is not None]
        if (lease_left := self._lease.left_s()) is not None:
            due.append(now + lease_left)
        open_ones = [replica for replica in self._replicas if replica.output != CLOSED]
        if not all([self._listen(replica, now) for replica in open_ones]):  # noqa: C419
            due.append(now + _STALLED_S)
        return max(0, int((min(due) - now) * 1000) + 1) if due else -1

    def _listen(self, replica: Replica, now: float) -> bool:
        """Listen to the program's output unless its spool wants a pause."""
        if replica.log.wants(now):
            self._poll.register(replica.output, select.POLLIN)
            return True
        # Not merely masked: a hang-up is reported whatever the mask, and would spin.
        try:
            self._poll.unregister(replica.output)
        except KeyError:
            pass
        return False

    def _pump(self, ready: set[int]) -> None:
        for replica in self._replicas:
            fd = replica.output
            if fd == CLOSED or fd not in ready:
                continue
            if replica.pump():
                self._pokes.output(time.monotonic())
            if replica.output == CLOSED:
                self._poll.unregister(fd)

    def _on_signals(self) -> None:
        try:
            came = os.read(self._wake, 4096)
        except BlockingIOError:
            return
        if int(signal.SIGUSR1) in came:
            self._check_stop()
        self._reap()

    def _reap(self) -> None:
        """Take in every child that ended: our replicas, and orphans that fell to us."""
        while True:
            try:
                ended = os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
            except ChildProcessError:
                return
            if ended is None:
                return
            for rank, replica in enumerate(self._replicas):
                if replica.pid == ended.si_pid:
                    self._ended(rank, replica)
                    break
            else:
                os.waitpid(ended.si_pid, 0)

    def _ended(self, rank: int, replica: Replica) -> None:
        replica.reap()
        if replica.waiting:
            self._hear(replica)
        if replica.status != 0 and self._failed is None and not self._why:
            self._failed = rank
            self._begin_end(self._order["grace_s"])

    def _hear(self, replica: Replica) -> None:
        self._poll.unregister(replica.trouble_pipe)
        replica.hear()
        if replica.trouble:
            self._end(endings.START, replica.trouble, grace_s=0.0)
        elif self._kill_at is not None:
            replica.signal(signal.SIGTERM)  # the first one may have come before it could listen
        if not any(other.waiting or other.trouble for other in self._replicas):
            self._announce()

    def _announce(self) -> None:
        self._started_ms = time.time_ns() // 1_000_000
        document = {
            "monitor": self._claim,
            "replicas": [replica.process() for replica in self._replicas],
            "started_ms": self._started_ms,
        }
        try:
            self._processes.publish(document)
        except OSError as problem:
            self._end(endings.START, f"its record could not be written: {problem}", grace_s=0.0)
        self._pokes.state()

    def _check_stop(self) -> None:
        stop = records.read(self._home, records.STOP)
        if stop is not None:
            self._end(endings.CANCELLED, "stopped on request", grace_s=float(stop["grace_s"]))

    def _check_lease(self) -> None:
        if self._lease.over():
            self._end(endings.LOST, OVER, grace_s=self._lease.grace_s(self._order["grace_s"]))

    def _on_clock(self, now: float) -> None:
        self._check_lease()
        if self._deadline is not None and now >= self._deadline:
            self._deadline = None
            text = f"stopped after its timeout of {self._order['timeout_s']:g} s"
            self._end(endings.TIMEOUT, text, grace_s=self._order["grace_s"])
        if self._kill_at is not None and now >= self._kill_at:
            self._kill_at = now + _KILL_AGAIN_S
            for replica in self._replicas:
                replica.kill()
        self._pokes.flush(now)

    def _end(self, why: str, detail: str, *, grace_s: float) -> None:
        """Make it end, for the first reason given; later ones can only make it quicker."""
        if not self._why and self._failed is None:
            self._why, self._detail = why, detail
        self._begin_end(grace_s)

    def _begin_end(self, grace_s: float) -> None:
        self._deadline = None
        at = time.monotonic() + grace_s
        if self._kill_at is None:
            for replica in self._replicas:
                replica.signal(signal.SIGTERM)
        self._kill_at = at if self._kill_at is None else min(self._kill_at, at)

    def _finish(self) -> None:
        ended_ms = time.time_ns() // 1_000_000
        aftermath.kill_remains(self._replicas, self._wake, self._reap)
        aftermath.drain(self._replicas)
        oom = self._failed is not None and self._replicas[self._failed].group.oom_kills() > 0
        end = endings.verdict(
            self._why,
            [replica.status for replica in self._replicas] or [None],
            self._failed,
            oom=oom,
            detail=self._detail,
        )
        for replica in self._replicas:
            replica.log.close()
            replica.group.remove()
        end["logs"] = [replica.log_end() for replica in self._replicas]
        end["started_ms"], end["ended_ms"] = self._started_ms, ended_ms
        aftermath.publish(end, self._home, self._end_record)
        self._pokes.state()


def _wake_on_signals() -> int:
    """A pipe that gets one byte per signal, so that one poll waits for everything."""
    reading, writing = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
    signal.set_wakeup_fd(writing, warn_on_full_buffer=False)
    for number in (signal.SIGCHLD, signal.SIGUSR1):
        signal.signal(number, _noted)
    # The monitor must see the end of its attempt: those who want that end write a stop request.
    for number in (signal.SIGINT, signal.SIGHUP, signal.SIGTERM):
        signal.signal(number, signal.SIG_IGN)
    return reading


def _noted(_number: int, _frame: object) -> None:
    """The byte in the pipe says it all."""
