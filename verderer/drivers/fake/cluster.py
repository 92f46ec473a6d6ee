"""The fake cluster itself: what exists there, whoever looks at it."""

from __future__ import annotations

import asyncio
import heapq
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import count

from verderer.core.model.attempt import AttemptKey, AttemptState, End, EndCause
from verderer.drivers.contract import NodeFacts, Observed, Order
from verderer.drivers.fake.script import Behave, Behaviour, Clock, RealClock, succeed_at_once


@dataclass(slots=True)
class Attempt:
    """One attempt on the cluster. `turn` makes earlier plans for it void."""

    order: Order | None
    behaviour: Behaviour
    observed: Observed
    turn: int = 0
    due: float | None = None
    """When the last of the plans for it is due; None: nothing was ever planned."""
    over: asyncio.Event | None = None
    """Made for those who wait for its end."""


@dataclass(frozen=True, slots=True)
class _Plan:
    """What will become of an attempt, unless its `turn` has moved on by then."""

    key: AttemptKey
    turn: int
    end: End | None
    """None: it begins to run."""


class FakeCluster:
    """Attempts, nodes and a heap of what happens next: one entry per attempt, no task per attempt.

    It outlives its drivers, as a real cluster outlives an agent: make another `FakeDriver` over it
    to rehearse a restart.
    """

    def __init__(
        self,
        nodes: Sequence[NodeFacts],
        *,
        behave: Behave = succeed_at_once,
        clock: Clock | None = None,
        epoch_ms: int = 1_700_000_000_000,
    ) -> None:
        """`epoch_ms` is the unix time at the clock's zero."""
        self.clock: Clock = clock or RealClock()
        self.behave = behave
        self.starts: Counter[AttemptKey] = Counter()
        """How often each attempt really began to exist: at most once, or something is wrong."""
        self.nodes = {node.name: node for node in nodes}
        self.attempts: dict[AttemptKey, Attempt] = {}
        self.observed: dict[AttemptKey, Observed] = {}
        """The same facts as in `attempts`, ready to be handed out."""
        self.changed = asyncio.Event()
        self._epoch_ms = epoch_ms
        self._plans: list[tuple[float, int, _Plan]] = []
        self._ticket = count()
        self._turn_of_nodes = count()

    def create(self, order: Order, behaviour: Behaviour) -> None:
        """Make the attempt exist. The caller has made sure that it does not."""
        self.starts[order.key] += 1
        node = behaviour.node or self._next_node()
        seen = Observed(
            key=order.key, state=AttemptState.STARTING, node=node, pending=behaviour.pending
        )
        self.attempts[order.key] = Attempt(order, behaviour, seen)
        self._put(self.attempts[order.key], seen)
        self._plan(order.key, behaviour.start_s, None)
        self.settle()

    def bar(self, key: AttemptKey) -> None:
        """Keep an attempt that never existed from ever starting."""
        end = End(cause=EndCause.CANCELLED, message="stopped before it was started")
        seen = Observed(key=key, state=end.state, end=end, ended_ms=self.unix_ms())
        self.attempts[key] = Attempt(None, Behaviour(), seen)
        self._put(self.attempts[key], seen)

    def stop(self, key: AttemptKey, *, grace_s: float) -> None:
        """Ask it to end: at once if it heeds a polite signal, else after the grace."""
        attempt = self.attempts[key]
        if attempt.observed.state.over:
            return
        attempt.turn += 1
        self._put(attempt, replace(attempt.observed, state=AttemptState.STOPPING))
        end = End(cause=EndCause.CANCELLED, message="stopped on request")
        self._plan(key, 0.0 if attempt.behaviour.heeds_stop else grace_s, end)
        self.settle()

    def lose_node(self, name: str) -> None:
        """The node goes away, and whatever ran there is lost."""
        self.nodes[name] = replace(self.nodes[name], ready=False)
        for attempt in self.attempts.values():
            if attempt.observed.node == name and not attempt.observed.state.over:
                self._end(attempt, End(cause=EndCause.LOST, message=f"node {name} was lost"))
        self.changed.set()

    def return_node(self, name: str) -> None:
        """The node is back, empty."""
        self.nodes[name] = replace(self.nodes[name], ready=True)
        self.changed.set()

    def remove(self, key: AttemptKey) -> None:
        """Nothing is left of it."""
        self.attempts.pop(key, None)
        self.observed.pop(key, None)

    def settle(self) -> None:
        """Let everything happen that is due by now."""
        now = self.clock.now()
        while self._plans and self._plans[0][0] <= now:
            due, _, plan = heapq.heappop(self._plans)
            attempt = self.attempts.get(plan.key)
            if attempt is None or attempt.turn != plan.turn or attempt.observed.state.over:
                continue
            if plan.end is None:
                self._run(attempt, at=due)
            else:
                self._end(attempt, plan.end, at=due)

    def ended(self, key: AttemptKey) -> asyncio.Event:
        """Set once the attempt is over."""
        attempt = self.attempts[key]
        if attempt.over is None:
            attempt.over = asyncio.Event()
        if attempt.observed.state.over:
            attempt.over.set()
        return attempt.over

    def next_at(self) -> float | None:
        """When something will happen next, by the cluster's clock."""
        return self._plans[0][0] if self._plans else None

    def unix_ms(self, at: float | None = None) -> int:
        """The cluster's wall clock."""
        return self._epoch_ms + int((self.clock.now() if at is None else at) * 1000)

    def _run(self, attempt: Attempt, *, at: float) -> None:
        running = replace(
            attempt.observed,
            state=AttemptState.RUNNING,
            started_ms=self.unix_ms(at),
            pending=None,
        )
        self._put(attempt, running)
        order, behaviour = attempt.order, attempt.behaviour
        timeout = order.timeout_s if order is not None else None
        if timeout is not None and (behaviour.run_s is None or timeout < behaviour.run_s):
            end = End(cause=EndCause.TIMEOUT, message=f"stopped after its timeout of {timeout:g} s")
            self._plan_at(attempt, at + timeout, end)
        elif behaviour.run_s is not None:
            self._plan_at(attempt, at + behaviour.run_s, behaviour.end)

    def _end(self, attempt: Attempt, end: End, *, at: float | None = None) -> None:
        ended = replace(attempt.observed, state=end.state, end=end, ended_ms=self.unix_ms(at))
        self._put(attempt, ended)
        if attempt.over is not None:
            attempt.over.set()

    def _put(self, attempt: Attempt, seen: Observed) -> None:
        attempt.observed = seen
        self.observed[seen.key] = seen
        self.changed.set()

    def _plan(self, key: AttemptKey, in_s: float, end: End | None) -> None:
        self._plan_at(self.attempts[key], self.clock.now() + in_s, end)

    def _plan_at(self, attempt: Attempt, at: float, end: End | None) -> None:
        plan = _Plan(attempt.observed.key, attempt.turn, end)
        attempt.due = at
        heapq.heappush(self._plans, (at, next(self._ticket), plan))

    def _next_node(self) -> str:
        ready = [name for name, node in self.nodes.items() if node.ready]
        return ready[next(self._turn_of_nodes) % len(ready)] if ready else ""
