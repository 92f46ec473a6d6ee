"""The `slurm` driver: attempts are batch jobs of the agent's own user."""

from __future__ import annotations

import asyncio
import contextlib
import os
import time
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from pathlib import Path
from typing import Final

from verderer.core.errors import Conflict, Fault, NotFound
from verderer.core.model.attempt import AttemptKey
from verderer.core.model.cluster import CheckReport
from verderer.drivers.contract import LogPiece, NodeFacts, Observed, Order
from verderer.drivers.slurm import cordon, logreader, submission
from verderer.drivers.slurm.attempt import SlurmAttempt
from verderer.drivers.slurm.clockwork import Clockwork, wait_for
from verderer.drivers.slurm.commands import Slurm
from verderer.drivers.slurm.ending import Ending
from verderer.drivers.slurm.examining import examine
from verderer.drivers.slurm.layout import PRIVATE, Layout
from verderer.drivers.slurm.nodefacts import node_facts
from verderer.drivers.slurm.options import SlurmOptions
from verderer.drivers.slurm.roster import Roster
from verderer.drivers.slurm.submitting import Submitting

NODES_EVERY_S: Final = 10.0
_FOLLOW_S: Final = 0.5
"""Between two looks for new output."""
_ARRIVES_S: Final = 10.0
"""A file server shows what a node has written within so long after the end."""


class SlurmDriver:
    """Keeps everything it must remember below `options.shared_dir`; see `docs/slurm.md`.

    A new driver over the same folder takes over what an earlier one left. Only one at a time may
    use a folder: the second gets a `Fault`.
    """

    kind = "slurm"

    def __init__(
        self,
        options: SlurmOptions,
        *,
        environment: Mapping[str, str] | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Touches nothing yet.

        `environment` is where PATH, HOME, LANG come from, the agent's own by default. `clock`
        counts seconds.
        """
        given = os.environ if environment is None else environment
        self._options = options
        self._clock = clock
        self._layout = Layout(options.shared_dir.absolute())
        self._slurm = Slurm(options, given)
        self._roster = Roster(self._layout, self._slurm, options, clock=clock)
        self._submitting = Submitting(
            self._layout,
            self._slurm,
            self._roster,
            options,
            base_environment=submission.base_environment(given),
            clock=clock,
        )
        self._ending = Ending(self._slurm, self._roster, clock=clock)
        self._looks = Clockwork(
            self._look,
            shortest_s=options.poll_s,
            longest_s=options.longest_poll_s,
            clock=clock,
        )
        self._node_looks = Clockwork(
            self._look_at_nodes, shortest_s=NODES_EVERY_S, longest_s=NODES_EVERY_S, clock=clock
        )
        self._nodes: list[NodeFacts] = []
        self._opening = asyncio.Lock()

    async def observe(self) -> Sequence[Observed]:
        """Every attempt of the shared folder, as of Slurm's last answer.

        Raises:
            Fault: Slurm or the file server does not answer; nothing follows from that.
        """
        roster = await self._open()
        await self._looks.refresh(busy=roster.busy)
        return roster.observed()

    async def examine(self) -> Sequence[CheckReport]:
        """Look at what any step here needs; see the contract."""
        return await examine(self._slurm, self._options)

    async def changed(self, *, timeout_s: float) -> None:
        """Return when a look at Slurm brought something new, or on time-out."""
        roster = await self._open()
        deadline = self._clock() + timeout_s
        while not roster.news.is_set() and (left := deadline - self._clock()) > 0:
            due = self._looks.due_in_s(busy=roster.busy)
            await wait_for(roster.news, min(left, max(due, 0.01)))
            if not roster.news.is_set() and due <= left:
                await self._looks.refresh(busy=roster.busy)

    async def start(self, order: Order, *, workspace: str) -> None:
        """Hand the order to Slurm, once; see the contract.

        Raises:
            Refusal: it can never run here, or Slurm does not take it.
            Fault: no answer came. It is looked for before it is handed in again.
        """
        await self._open()
        submission.check(order, self._options)
        work = self._layout.work(order.key)
        if workspace and Path(workspace) != work:
            raise Conflict(f"{workspace} is not the working directory of {order.key}")
        await self._submitting.start(order)
        self._looks.stir()

    async def stop(self, key: AttemptKey, *, grace_s: float) -> None:
        """Make it end, or make sure that it never begins; it is observed as cancelled then.

        Raises:
            Fault: the request cannot be written, or Slurm does not take it.
        """
        roster = await self._open()
        attempt = roster.get(key) or roster.add(key)
        try:
            await self._ending.stop(attempt, grace_s=grace_s)
        except OSError as problem:
            raise Fault(f"{key} cannot be stopped: {problem}") from problem
        self._looks.stir()

    async def forget(self, key: AttemptKey) -> None:
        """Remove its directory with the working directory and the logs.

        Raises:
            Conflict: it has not ended.
        """
        roster = await self._open()
        attempt = roster.get(key)
        if attempt is not None and not attempt.over:
            raise Conflict(f"{key} has not ended", hint="stop it first")
        try:
            await self._discard(key)
        except OSError as problem:
            raise Fault(f"{key} cannot be removed: {problem}") from problem
        roster.drop(key)

    async def nodes(self) -> Sequence[NodeFacts]:
        """The nodes on which our jobs may land, with what is free of all users' jobs as labels.

        Raises:
            Fault: Slurm does not answer.
        """
        await self._open()
        await self._node_looks.refresh(busy=True)
        return list(self._nodes)

    async def logs(self, key: AttemptKey, *, replica: int, after: int) -> AsyncIterator[LogPiece]:
        """Output from byte `after` on; stdout and stderr are one stream.

        Raises:
            NotFound: there is no such attempt.
            Fault: the file server does not give the output back.
        """
        roster = await self._open()
        attempt = roster.get(key)
        if attempt is None:
            raise NotFound(f"there is no attempt {key} here")
        path, offset, over_at = self._layout.log(key, replica), after, float("inf")
        try:
            while True:
                # Asked before reading: what is written until the end is then surely read.
                over = attempt.over
                piece = await asyncio.to_thread(logreader.read_piece, path, offset)
                if piece is not None:
                    yield piece
                    offset += len(piece.data)
                elif not over:
                    await self._follow(roster, attempt)
                elif offset >= (total := attempt.log_bytes(replica)):
                    return
                elif (over_at := min(over_at, self._clock())) + _ARRIVES_S < self._clock():
                    yield logreader.hole(offset, total)
                    return
                else:
                    await asyncio.sleep(_FOLLOW_S)
        except OSError as problem:
            raise Fault(f"the output of {key} cannot be read: {problem}") from problem

    async def prepare(self, order: Order) -> str:
        """Make the empty working directory; that of an attempt which was ordered is left alone.

        Raises:
            Fault: it cannot be made.
        """
        roster = await self._open()
        work = self._layout.work(order.key)
        if roster.get(order.key) is not None:
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

    async def cordon(self, node: str, *, reason: str) -> None:
        """Let nothing new begin on the node; see `cordon.cordon`."""
        await cordon.cordon(self._slurm, node, reason)

    async def drain(self, node: str, *, grace_s: float) -> bool:
        """Ask our own work to leave the node; whether nobody's is left there.

        Other users' jobs are waited for, never ended.
        """
        roster = await self._open()
        await cordon.cordon(self._slurm, node, "drained for repair")
        await self._looks.refresh(busy=roster.busy)
        for observed in roster.observed():
            if observed.node == node and not observed.state.over:
                await self.stop(observed.key, grace_s=grace_s)
        return cordon.is_empty(await cordon.state_of(self._slurm, node))

    async def uncordon(self, node: str) -> None:
        """Put back what `cordon` took out, and nothing else; see `cordon.uncordon`."""
        await cordon.uncordon(self._slurm, node)

    async def close(self) -> None:
        """Let go of the folder; what runs goes on, and the next driver finds it."""
        self._roster.close()

    async def _open(self) -> Roster:
        async with self._opening:
            if not self._roster.opened:
                await self._roster.open()
        return self._roster

    async def _look(self) -> None:
        await self._roster.look()
        if self._roster.news.is_set():
            self._looks.stir()
        await self._submitting.resume()
        await self._ending.insist()

    async def _look_at_nodes(self) -> None:
        partitions = await self._slurm.partitions()
        self._nodes = node_facts(await self._slurm.nodes(), partitions, self._options)

    async def _follow(self, roster: Roster, attempt: SlurmAttempt) -> None:
        """Wait a little, and see to it that somebody asks Slurm."""
        await attempt.news(timeout_s=_FOLLOW_S)
        with contextlib.suppress(Fault):  # output can be read while the controller is away
            await self._looks.refresh(busy=roster.busy)

    async def _discard(self, key: AttemptKey) -> None:
        """Out of sight at once, off the disk in a thread. Raises OSError."""
        gone = self._layout.discard(key, unique=time.time_ns())
        if gone is not None:
            await asyncio.to_thread(self._layout.empty, gone)
