"""Keeps the books of all attempts on this cluster and sees to it that `diff`'s actions happen."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import structlog

from verderer.agent.ending import Ender
from verderer.agent.journal import Decided, Dropped, Journal, Launched
from verderer.agent.launching import Launcher
from verderer.agent.logs.shipping import Shipper
from verderer.agent.orders import Actions, Desired, Held, Phase, diff
from verderer.agent.releasing import Releaser
from verderer.agent.reporter import Reporter
from verderer.agent.sightings import Sightings
from verderer.agent.telling import Teller, unix_ms
from verderer.agent.translate import end_fact, stored_output, terms_of
from verderer.agent.waits import Waits
from verderer.core.model.attempt import AttemptKey, AttemptState, End, EndCause
from verderer.drivers.contract import Observed
from verderer.wire.agent import Order, StoredOutput, SyncResponse

log = structlog.get_logger("verderer.agent")

DEFAULT_GRACE_S = 30.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Hands:
    """Those who do the work that takes time."""

    launcher: Launcher
    ender: Ender
    releaser: Releaser
    shipper: Shipper


class Reconciler:
    """All state that decisions are made from. Nothing here waits; every method returns at once."""

    def __init__(
        self,
        hands: Hands,
        journal: Journal,
        reporter: Reporter,
        *,
        epoch: int,
        settle_s: float,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.desired = Desired(epoch)
        self.held: dict[AttemptKey, Held] = {}
        self._sightings = Sightings()
        self._hands = hands
        self._journal = journal
        self._teller = Teller(reporter)
        self._waits = Waits(self._teller.waits)
        self._settle_s = settle_s
        self._clock = clock

    @property
    def unsettled(self) -> bool:
        """Whether some attempt is missing and not yet given up: look again soon."""
        return bool(self._sightings.absent)

    # What the world tells

    def restore(self) -> None:
        """Take up what an earlier life of the agent was answering for."""
        for text, memory in self._journal.live.items():
            key = AttemptKey.parse(text)
            held = Held(phase=Phase.LAUNCHED)
            self.held[key] = held
            if memory.decided is not None:
                held.phase = Phase.ENDED
                self._report_end(key, memory.decided)

    def received(self, answer: SyncResponse, *, asked: int) -> None:
        """Orders have come."""
        whole = self.desired.whole
        changed = self.desired.apply(answer, asked=asked)
        for key in changed & self.held.keys():
            if self.held[key].phase is not Phase.PREPARING:
                self.desired.running(key)
        everything = answer.full or self.desired.whole is not whole
        self.decide(None if everything else changed)

    def begin_observation(self) -> int:
        """Number the observation that is about to begin; hand the number to `observed`."""
        return self._sightings.begin()

    def observed(self, attempts: Sequence[Observed], *, number: int) -> set[AttemptKey]:
        """The driver has said what there is; returns what `act_on` has to be called for."""
        now = self._clock()
        return self._sightings.take(attempts, number=number, held=self.held, now=now)

    def act_on(self, changed: set[AttemptKey]) -> None:
        """Do and tell what follows from an observation."""
        self.decide(changed)
        for key in changed & self._sightings.seen.keys():
            self._tell_running(key, self._sightings.seen[key])
        self._waits.take(changed, self._sightings.seen)

    # What the hands tell

    def next_proof(self) -> int:
        """See `Launches`."""
        return self._sightings.next_number()

    def unwanted(self, key: AttemptKey) -> bool:
        """See `Launches`."""
        order = self.desired.orders.get(key)
        return order.launch is None if order is not None else self.desired.whole

    def launched(self, key: AttemptKey) -> None:
        """See `Launches`."""
        self.desired.running(key)

    def not_started(self, key: AttemptKey, end: End) -> None:
        """See `Launches`."""
        self.held[key].shipped = True
        self.decide_end(key, end)

    def changed(self, key: AttemptKey) -> None:
        """See `Launches`."""
        self.decide((key,))

    def shipped(self, key: AttemptKey) -> None:
        """All that the attempt wrote is safe."""
        if key in self.held:
            self.held[key].shipped = True
            self.decide((key,))

    def stop_failed(self, key: AttemptKey) -> None:
        """The driver did not take the stop; it is told again at the next decision."""
        if key in self.held:
            self.held[key].stopping = False
            self.decide((key,))

    def forgotten(self, key: AttemptKey) -> None:
        """The driver has removed what was left."""
        if str(key) in self._journal.live:
            self._journal.note(Dropped(str(key)))
        self.held.pop(key, None)
        self._sightings.forget(key)

    def decide_end(
        self,
        key: AttemptKey,
        end: End,
        *,
        at_ms: int | None = None,
        outputs: Sequence[StoredOutput] = (),
        by_driver: bool = False,
    ) -> None:
        """The attempt has ended like this; make it known until that is acknowledged.

        `by_driver` says that the driver would say the same again after a restart.
        """
        held = self.held[key]
        held.phase, held.storing = Phase.ENDED, False
        decided = Decided(
            str(key),
            end=end_fact(end),
            state=end.state.value,
            at_unix_ms=at_ms if at_ms is not None else unix_ms(),
            outputs=list(outputs),
        )
        if not by_driver and str(key) in self._journal.live:
            self._journal.note(decided)
        self._report_end(key, decided)

    # Decisions

    def decide(self, keys: Iterable[AttemptKey] | None) -> None:
        """Work out what to do about `keys` (None: about everything) and set it going."""
        actions = diff(
            self.desired,
            self._sightings.seen,
            self.held,
            now=self._clock(),
            settle_s=self._settle_s,
            keys=None if keys is None else list(keys),
        )
        for order in actions.start:
            self._start(order)
        for key in actions.cancel:
            self._cancel(key)
        for key in actions.stop:
            self._stop(key)
        for one in actions.ended:
            self._ended(one)
        self._give_up(actions)
        for key in actions.forget:
            self.held[key].forgetting = True
            self._hands.releaser.forget(key)
        if actions.adopt:
            self._adopt(actions.adopt)

    def _start(self, order: Order) -> None:
        key = AttemptKey.parse(order.key)
        if order.launch is None:
            return
        held = Held(phase=Phase.PREPARING, confirmed=False)
        self.held[key] = held
        self._teller.starting(key)
        self._hands.launcher.submit(key, order, order.launch, held)

    def _adopt(self, keys: Sequence[AttemptKey]) -> None:
        for key in keys:
            self.held[key] = Held(phase=Phase.LAUNCHED)
            order = self.desired.orders.get(key)
            if order is not None:
                self._journal.note(terms_of(order))
                self.desired.running(key)
            else:
                log.warning("not ours to run: stopping it", attempt=str(key))
        self.decide(keys)
        for key in keys:
            self._tell_running(key, self._sightings.seen[key])

    def _cancel(self, key: AttemptKey) -> None:
        held = self.held.setdefault(key, Held(phase=Phase.PREPARING, confirmed=False))
        if held.storing:
            self._hands.ender.abort(key)
            message = "cancelled while its outputs were being stored"
        else:
            self._hands.launcher.abort(key)
            held.shipped = True
            message = "cancelled before it started"
        self.decide_end(key, End(cause=EndCause.CANCELLED, message=message))

    def _stop(self, key: AttemptKey) -> None:
        self.held[key].stopping = True
        order = self.desired.orders.get(key)
        grace_s = order.grace_s if order is not None else DEFAULT_GRACE_S
        self._hands.releaser.stop(key, grace_s)

    def _ended(self, one: Observed) -> None:
        held = self.held[one.key]
        held.phase = Phase.ENDED
        self._tell_running(one.key, one)
        memory = self._journal.live.get(str(one.key))
        end = one.end or End(cause=EndCause.LOST, message="the cluster does not say how it ended")
        outputs = memory.launched.outputs if memory is not None else []
        if end.state is AttemptState.SUCCEEDED and self._hands.ender.carries(outputs):
            held.storing = True
            self._hands.ender.store(one.key, outputs, end, at_ms=one.ended_ms)
            return
        carried = [stored_output(output) for output in one.outputs]
        self.decide_end(one.key, end, at_ms=one.ended_ms, outputs=carried, by_driver=True)

    def _give_up(self, actions: Actions) -> None:
        for key in actions.lost:
            message = "the cluster shows no trace of it, and nobody saw it end"
            self.decide_end(key, End(cause=EndCause.LOST, message=message))
        for key in self._sightings.absent & self.held.keys():
            held, since = self.held[key], self.held[key].absent_since
            silent = since is not None and self._clock() - since >= self._settle_s
            if held.phase is Phase.ENDED and not held.shipped and silent:
                self._hands.shipper.abandon(key)

    def _tell_running(self, key: AttemptKey, one: Observed) -> None:
        if (held := self.held.get(key)) is None:
            return
        began = one.state in (AttemptState.RUNNING, AttemptState.STOPPING)
        if not held.ran and (one.state is AttemptState.RUNNING or one.started_ms is not None):
            held.ran = True
            self._teller.running(key, one)
        if (began or one.state.over) and not held.shipped:
            self._follow(key, over=one.state.over)

    def _follow(self, key: AttemptKey, *, over: bool) -> None:
        memory = self._journal.live.get(str(key))
        terms = memory.launched if memory is not None else Launched(str(key))
        self._hands.shipper.follow(key, terms, over=over)

    def _report_end(self, key: AttemptKey, decided: Decided) -> None:
        seen = self._sightings.seen.get(key)
        node = seen.node if seen is not None else ""
        self._teller.ended(key, decided, node, lambda: self._end_known(key))

    def _end_known(self, key: AttemptKey) -> None:
        self.desired.finish(key)
        if key in self.held:
            self.held[key].reported = True
            self.decide((key,))
