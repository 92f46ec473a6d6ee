"""One agent's hand on a `FakeCluster`."""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncIterator, Sequence

from verderer.core.errors import Conflict, Fault, NotFound, Refusal
from verderer.core.model.attempt import AttemptKey
from verderer.core.model.resources import Resources
from verderer.drivers.contract import LogPiece, NodeFacts, Observed, Order
from verderer.drivers.fake.cluster import FakeCluster
from verderer.drivers.fake.script import Behave, Clock, succeed_at_once

_PIECE = 64 * 1024
_FOLLOW_S = 30.0
"""Followers look again by themselves, should nobody else let the cluster's time pass."""


def fake_nodes(number: int = 4, **each: int) -> list[NodeFacts]:
    """Nodes `node-0`, `node-1`, … with `each` amount (cpu in thousandths, memory in bytes)."""
    amounts = Resources.of(each or {"cpu": 64_000, "memory": 512 << 30, "nvidia.com/gpu": 8_000})
    return [NodeFacts(name=f"node-{i}", ready=True, allocatable=amounts) for i in range(number)]


class FakeDriver:
    """Fulfils the driver contract over a cluster in memory, and its faults on demand."""

    kind = "fake"

    def __init__(
        self,
        cluster: FakeCluster | None = None,
        *,
        behave: Behave = succeed_at_once,
        clock: Clock | None = None,
    ) -> None:
        """Over `cluster`, or over four nodes of its own that follow `behave` and `clock`."""
        self.cluster = cluster or FakeCluster(fake_nodes(), behave=behave, clock=clock)
        self.unreachable = False
        """Every call raises a `Fault` while this is set."""
        self.answers_twice = False
        """`observe` lists everything twice, as a cluster does whose pages shift while read."""
        self._faulted: set[AttemptKey] = set()

    @property
    def starts(self) -> Counter[AttemptKey]:
        """How often each attempt began to exist, over all drivers of the cluster."""
        return self.cluster.starts

    async def observe(self) -> Sequence[Observed]:
        """Everything on the cluster, as of now."""
        self._reach()
        self.cluster.changed.clear()
        self.cluster.settle()
        seen = list(self.cluster.observed.values())
        return seen + seen if self.answers_twice else seen

    async def changed(self, *, timeout_s: float) -> None:
        """Return once something happened since the last `observe`, or on time-out."""
        self._reach()
        cluster = self.cluster
        until = cluster.clock.now() + timeout_s
        while not cluster.changed.is_set() and cluster.clock.now() < until:
            due = cluster.next_at()
            wake = until if due is None else min(until, due)
            await cluster.clock.wait(cluster.changed, until=wake)
            cluster.settle()

    async def start(self, order: Order, *, workspace: str) -> None:
        """Make the attempt exist, or do as its behaviour says; see `Behaviour`."""
        del workspace  # the fake cluster has no files
        self._reach()
        if order.key in self.cluster.attempts:
            return
        behaviour = self.cluster.behave(order)
        if behaviour.refuse:
            raise Refusal(behaviour.refuse)
        first = order.key not in self._faulted
        if behaviour.lose_order and first:
            self._faulted.add(order.key)
            raise Fault("the order was lost on its way")
        self.cluster.create(order, behaviour)
        if behaviour.crash_after_accept and first:
            self._faulted.add(order.key)
            raise Fault("the answer was lost on its way")

    async def stop(self, key: AttemptKey, *, grace_s: float) -> None:
        """Make it end, or keep it from ever starting."""
        self._reach()
        if key in self.cluster.attempts:
            self.cluster.stop(key, grace_s=grace_s)
        else:
            self.cluster.bar(key)

    async def forget(self, key: AttemptKey) -> None:
        """Remove an attempt that has ended. Raises Conflict when it has not."""
        self._reach()
        seen = self.cluster.observed.get(key)
        if seen is not None and not seen.state.over:
            raise Conflict(f"{key} has not ended", hint="stop it first")
        self.cluster.remove(key)

    async def nodes(self) -> Sequence[NodeFacts]:
        """The nodes; lost ones are not ready."""
        self._reach()
        return list(self.cluster.nodes.values())

    async def logs(self, key: AttemptKey, *, replica: int, after: int) -> AsyncIterator[LogPiece]:
        """The output of replica 0, once it has ended. Raises NotFound."""
        self._reach()
        attempt = self.cluster.attempts.get(key)
        if attempt is None:
            raise NotFound(f"there is no attempt {key} here")
        clock = self.cluster.clock
        while not attempt.observed.state.over:
            # By its own plan: thousands who follow must not all wake for each other's.
            until = clock.now() + _FOLLOW_S
            if attempt.due is not None and clock.now() < attempt.due < until:
                until = attempt.due
            await clock.wait(self.cluster.ended(key), until=until)
            self.cluster.settle()
        began = attempt.observed.started_ms
        if replica == 0 and began is not None:
            output = attempt.behaviour.output
            for offset in range(after, len(output), _PIECE):
                data = output[offset : offset + _PIECE]
                yield LogPiece(offset=offset, unix_ms=began, data=data)

    def _reach(self) -> None:
        if self.unreachable:
            raise Fault("the cluster does not answer")
