"""Laws of reconciliation under any interleaving of answers, observations, crashes and losses.

The machine below is an agent reduced to its decisions (`orders`) and its journal, a cluster, and a
server that delivers what it composed earlier. Two laws are checked after every step: no attempt is
started twice, and at the end of all trouble every order has an acknowledged end.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from verderer.agent.orders import Desired, Held, Phase, diff, note_presence
from verderer.core.model.attempt import AttemptKey, AttemptState, End, EndCause
from verderer.drivers.contract import Observed
from verderer.wire.agent import Launch, Order, SyncResponse

LAUNCH = Launch(run_name="r", step="s", project="p")
SETTLE_S = 3.0
STATES = {
    "exit": End(cause=EndCause.EXIT, exit_code=0),
    "cancel": End(cause=EndCause.CANCELLED),
}


@dataclass
class Server:
    revision: int = 0
    epoch: int = 0
    orders: dict[AttemptKey, Order] = field(default_factory=dict)
    ends: dict[AttemptKey, str] = field(default_factory=dict)

    def want(self, key: AttemptKey, launch: Launch | None) -> None:
        self.revision += 1
        self.orders[key] = Order(key=str(key), revision=self.revision, launch=launch)

    def answer(self, since: int, *, full: bool) -> SyncResponse:
        full = full or since == 0
        orders = [one for one in self.orders.values() if full or one.revision > since]
        return SyncResponse(epoch=self.epoch, revision=self.revision, full=full, orders=orders)

    def take_end(self, key: AttemptKey, state: str) -> None:
        if key in self.orders:
            self.ends[key] = state
            del self.orders[key]


class Agents(RuleBasedStateMachine):
    """One life of an agent after another."""

    def __init__(self) -> None:
        super().__init__()
        self.server = Server()
        self.cluster: dict[AttemptKey, Observed] = {}
        self.starts: Counter[AttemptKey] = Counter()
        self.journal: set[AttemptKey] = set()
        self.clock = 0.0
        self.ordered = 0
        self.begin_life()

    def begin_life(self) -> None:
        self.server.epoch += 1
        self.desired = Desired(self.server.epoch)
        self.held = {key: Held(phase=Phase.LAUNCHED) for key in self.journal}
        self.seen: dict[AttemptKey, Observed] = {}
        self.number = 0
        self.snapshot: dict[AttemptKey, Observed] | None = None
        self.flight: tuple[int, SyncResponse] | None = None
        self.unreported: dict[AttemptKey, str] = {}
        self.launching: set[AttemptKey] = set()

    # The world

    @rule()
    def somebody_submits(self) -> None:
        self.ordered += 1
        self.server.want(AttemptKey(self.ordered, 0, 1), LAUNCH)

    @precondition(lambda self: self.server.orders)
    @rule(data=st.data())
    def somebody_cancels(self, data: st.DataObject) -> None:
        self.server.want(data.draw(st.sampled_from(sorted(self.server.orders, key=str))), None)

    @precondition(lambda self: self.cluster)
    @rule(data=st.data(), vanish=st.booleans())
    def something_happens_on_the_cluster(self, data: st.DataObject, vanish: bool) -> None:
        key = data.draw(st.sampled_from(sorted(self.cluster, key=str)))
        if self.cluster[key].state.over:
            return
        if vanish:
            # What was accepted without an answer, never shown and then deleted by a stranger
            # cannot be told from what was never accepted: no agent can keep the law there.
            if key in self.launching and not self.held[key].confirmed:
                return
            del self.cluster[key]
        else:
            end = STATES["exit"]
            self.cluster[key] = Observed(key=key, state=end.state, end=end)

    @rule()
    def the_agent_is_killed(self) -> None:
        self.begin_life()

    @rule(seconds=st.sampled_from([0.5, 4.0]))
    def time_passes(self, seconds: float) -> None:
        self.clock += seconds

    # The wire

    @precondition(lambda self: self.flight is None)
    @rule(full=st.booleans())
    def the_server_composes_an_answer(self, full: bool) -> None:
        asked = self.desired.ask()
        self.flight = (asked, self.server.answer(self.desired.revision, full=full))

    @precondition(lambda self: self.flight is not None)
    @rule(lose=st.booleans())
    def the_answer_arrives_or_not(self, lose: bool) -> None:
        assert self.flight is not None
        (asked, answer), self.flight = self.flight, None
        if not lose:
            self.desired.apply(answer, asked=asked)
            self.decide()

    @precondition(lambda self: self.unreported)
    @rule(data=st.data(), lose=st.booleans())
    def a_report_is_delivered(self, data: st.DataObject, lose: bool) -> None:
        key = data.draw(st.sampled_from(sorted(self.unreported, key=str)))
        self.server.take_end(key, self.unreported[key])
        if not lose:
            self.acknowledge(key)

    def acknowledge(self, key: AttemptKey) -> None:
        del self.unreported[key]
        self.desired.finish(key)
        self.held[key].reported = True
        self.held[key].shipped = True
        self.decide()

    # The cluster, as the agent sees it

    @precondition(lambda self: self.snapshot is None)
    @rule()
    def an_observation_begins(self) -> None:
        self.number += 1
        self.snapshot = dict(self.cluster)

    @precondition(lambda self: self.snapshot is not None)
    @rule()
    def the_observation_ends(self) -> None:
        assert self.snapshot is not None
        self.seen, self.snapshot = self.snapshot, None
        for key, held in self.held.items():
            note_presence(held, present=key in self.seen, number=self.number, now=self.clock)
        self.decide()

    @precondition(lambda self: self.launching)
    @rule(data=st.data(), accepted=st.booleans())
    def the_driver_answers_a_start(self, data: st.DataObject, accepted: bool) -> None:
        """Or the agent gives the order once more, when the answer did not come."""
        key = data.draw(st.sampled_from(sorted(self.launching, key=str)))
        if self.held[key].phase is not Phase.LAUNCHING:
            self.launching.discard(key)
            return
        if key not in self.cluster and not self.held[key].confirmed:
            self.starts[key] += 1
            self.cluster[key] = Observed(key=key, state=AttemptState.RUNNING)
        if accepted:
            self.launching.discard(key)
            self.held[key].confirmed = True
            self.held[key].proof = self.number + 1
            self.held[key].phase = Phase.LAUNCHED
            self.decide()

    # The agent

    def decide(self) -> None:
        actions = diff(
            self.desired, self.seen, self.held, now=self.clock, settle_s=SETTLE_S, keys=None
        )
        for order in actions.start:
            key = AttemptKey.parse(order.key)
            self.held[key] = Held(phase=Phase.LAUNCHING, confirmed=False)
            self.journal.add(key)
            self.launching.add(key)
        for key in actions.adopt:
            self.held[key] = Held(phase=Phase.LAUNCHED)
            self.journal.add(key)
        for key in actions.cancel:
            self.held.setdefault(key, Held(phase=Phase.PREPARING))
            self.end(key, "cancelled")
        for key in actions.stop:
            self.held[key].stopping = True
            if key in self.cluster and not self.cluster[key].state.over:
                end = STATES["cancel"]
                self.cluster[key] = Observed(key=key, state=end.state, end=end)
        for one in actions.ended:
            self.end(one.key, one.state.value)
        for key in actions.lost:
            self.end(key, "lost")
        for key in actions.forget:
            self.forget(key)

    def end(self, key: AttemptKey, state: str) -> None:
        self.held[key].phase = Phase.ENDED
        self.unreported[key] = state

    def forget(self, key: AttemptKey) -> None:
        self.cluster.pop(key, None)
        self.seen.pop(key, None)
        if self.snapshot is not None:
            self.snapshot.pop(key, None)
        self.journal.discard(key)
        self.launching.discard(key)
        del self.held[key]

    # The laws

    @invariant()
    def nothing_starts_twice(self) -> None:
        assert all(count == 1 for count in self.starts.values())

    @invariant()
    def nothing_runs_after_its_end_was_accepted_without_being_stopped(self) -> None:
        for key in self.server.ends:
            live = key in self.cluster and not self.cluster[key].state.over
            assert not live or key in self.journal

    def teardown(self) -> None:
        """Peace comes: then every order finds its end, and nothing is left over."""
        for key in list(self.server.orders):
            self.server.want(key, None)
        for _ in range(6):
            if self.flight is None:
                self.flight = (self.desired.ask(), self.server.answer(0, full=True))
            self.the_answer_arrives_or_not(False)
            for key in sorted(self.launching, key=str):
                self._answer(key)
            for _ in range(2):
                if self.snapshot is None:
                    self.an_observation_begins()
                self.the_observation_ends()
                self.clock += SETTLE_S
            for key in list(self.unreported):
                self.server.take_end(key, self.unreported[key])
                self.acknowledge(key)
        assert not self.server.orders
        assert set(self.server.ends) == {AttemptKey(n + 1, 0, 1) for n in range(self.ordered)}
        assert not self.cluster
        assert not self.held
        assert not self.journal

    def _answer(self, key: AttemptKey) -> None:
        held = self.held[key]
        if key not in self.cluster and held.phase is Phase.LAUNCHING and not held.confirmed:
            self.starts[key] += 1
            self.cluster[key] = Observed(key=key, state=AttemptState.RUNNING)
        self.launching.discard(key)
        self.held[key].proof = self.number + 1
        if self.held[key].phase is Phase.LAUNCHING:
            self.held[key].phase = Phase.LAUNCHED
        self.decide()


Agents.TestCase.settings = settings(max_examples=80, stateful_step_count=50, deadline=None)
TestAgents = Agents.TestCase
