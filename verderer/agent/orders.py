"""What the control plane wants against what the cluster shows: snapshot in, actions out.

Whole-set reconciliation. The agent never reacts to an event as such: every change only leads to
`diff` being asked again, so a restart of anything needs no handling of its own.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final

import msgspec

from verderer.core.model.attempt import AttemptKey
from verderer.drivers.contract import Observed
from verderer.wire.agent import Launch, Order, SyncResponse

# Stands for the launch of an attempt that runs already: what it consists of is not needed again,
# and ten thousand scripts would not fit into the agent's memory.
_RUNS_ALREADY: Final = Launch(run_name="", step="", project="")


class Phase(StrEnum):
    """How far this agent has come with an attempt."""

    PREPARING = "preparing"  # the driver knows nothing yet; may be dropped without a trace
    LAUNCHING = "launching"  # recorded durably; the driver has been asked, and has not answered
    LAUNCHED = "launched"  # the driver holds it, or did in an earlier life of the agent
    ENDED = "ended"  # its end is decided and only has to become known


@dataclass(slots=True, kw_only=True)
class Held:
    """An attempt that this agent answers for."""

    phase: Phase
    confirmed: bool = True
    """The driver accepted it or has shown it at least once."""
    proof: int = 0
    """Number of the first observation that began after the launch: earlier ones prove nothing."""
    absent_since: float | None = None
    """Monotonic seconds of the first observation, in an unbroken row, that does not show it."""
    ran: bool = False
    """It has been reported as running."""
    busy: bool = False
    """A task is preparing or launching it at this moment."""
    storing: bool = False
    """The program has succeeded and its outputs are on their way."""
    stopping: bool = False
    """The driver has been told to stop it."""
    reported: bool = False
    """The control plane has acknowledged its end."""
    shipped: bool = False
    """All that it wrote is stored and acknowledged, or there is nothing to store."""
    forgetting: bool = False

    @property
    def settled(self) -> bool:
        return self.phase is Phase.ENDED and self.reported and self.shipped and not self.busy


@dataclass(slots=True)
class Desired:
    """The orders in force, as far as answers have told."""

    epoch: int
    orders: dict[AttemptKey, Order] = field(default_factory=dict)
    revision: int = 0
    whole: bool = False
    """All orders in force have been received in this epoch; before that, absence means nothing.
    They come in one answer that says so, or in several, the last of which brings nothing new."""
    unreadable: set[str] = field(default_factory=set)
    """Keys in answers that name no attempt."""
    _asked: int = 0
    _finished: dict[AttemptKey, int] = field(default_factory=dict)

    def ask(self) -> int:
        """Number the request that is about to be sent; hand the number to `apply`."""
        self._asked += 1
        return self._asked

    def apply(self, answer: SyncResponse, *, asked: int) -> set[AttemptKey]:
        """Take in the answer to request `asked`; returns the attempts whose orders changed.

        An answer of another epoch changes nothing.
        """
        if answer.epoch != self.epoch:
            return set()
        fresh = self._readable(answer.orders, asked)
        changed = set(fresh)
        if answer.full:
            changed |= self.orders.keys()
            self.orders = {key: self._newer(key, order) for key, order in fresh.items()}
            self.whole = True
            self.revision = answer.revision
        else:
            for key, order in fresh.items():
                self.orders[key] = self._newer(key, order)
            self.whole |= not answer.orders and answer.revision == self.revision > 0
            self.revision = max(self.revision, answer.revision)
        self._finished = {key: mark for key, mark in self._finished.items() if mark > asked}
        return changed

    def running(self, key: AttemptKey) -> None:
        """What `key` consists of is not needed any more."""
        order = self.orders.get(key)
        if order is not None and order.launch is not None:
            self.orders[key] = msgspec.structs.replace(order, launch=_RUNS_ALREADY)

    def finish(self, key: AttemptKey) -> None:
        """The end of `key` is acknowledged: an answer composed before that must not revive it."""
        self.orders.pop(key, None)
        self._finished[key] = self._asked

    def _readable(self, orders: Iterable[Order], asked: int) -> dict[AttemptKey, Order]:
        found: dict[AttemptKey, Order] = {}
        for order in orders:
            try:
                key = AttemptKey.parse(order.key)
            except ValueError:
                self.unreadable.add(order.key[:100])
                continue
            if asked <= self._finished.get(key, 0):
                continue
            if key not in found or found[key].revision <= order.revision:
                found[key] = order
        return found

    def _newer(self, key: AttemptKey, order: Order) -> Order:
        """A stop is never taken back, and an older revision never wins over a newer one."""
        known = self.orders.get(key)
        if known is None:
            return order
        if known.launch is None and order.launch is not None:
            return known
        return order if order.revision >= known.revision else known


@dataclass(frozen=True, slots=True, kw_only=True)
class Actions:
    """What to do now. Each list may be carried out in any order, and again after a crash."""

    start: list[Order] = field(default_factory=list)
    """Wanted, and never seen here."""
    adopt: list[AttemptKey] = field(default_factory=list)
    """On the cluster, and this agent did not know of it: hold it from now on. Never before a
    full set has come, since the order says what belongs to it."""
    cancel: list[AttemptKey] = field(default_factory=list)
    """Must end, and nothing is left to be stopped: report it as cancelled."""
    stop: list[AttemptKey] = field(default_factory=list)
    lost: list[AttemptKey] = field(default_factory=list)
    """Was launched and the cluster shows no trace: report it as lost, never start it again."""
    ended: list[Observed] = field(default_factory=list)
    forget: list[AttemptKey] = field(default_factory=list)
    """Everything about it is safe elsewhere."""


def diff(
    desired: Desired,
    observed: Mapping[AttemptKey, Observed],
    held: Mapping[AttemptKey, Held],
    *,
    now: float,
    settle_s: float,
    keys: Iterable[AttemptKey] | None = None,
) -> Actions:
    """Decide for `keys` (None: for every attempt that anybody knows of).

    `now` is monotonic seconds. An attempt counts as lost only when it has been absent from all
    observations for `settle_s` seconds, since that verdict is final and lets another attempt
    start elsewhere.
    """
    actions = Actions()
    if keys is None:
        keys = desired.orders.keys() | observed.keys() | held.keys()
    for key in keys:
        order, seen, mine = desired.orders.get(key), observed.get(key), held.get(key)
        unwanted = order.launch is None if order is not None else desired.whole
        if mine is None:
            _decide_new(actions, key, order, seen, whole=desired.whole)
        elif mine.phase is Phase.ENDED:
            _decide_ended(actions, key, seen, mine, unwanted=unwanted)
        else:
            gone = mine.absent_since is not None and now - mine.absent_since >= settle_s
            _decide_held(actions, key, seen, mine, unwanted=unwanted, gone=gone)
    return actions


def note_presence(held: Held, *, present: bool, number: int, now: float) -> None:
    """Take in what observation `number` says about one attempt that the driver should know."""
    if present:
        held.absent_since = None
        held.confirmed = True
    elif held.absent_since is None and number >= held.proof and held.phase in _WITH_DRIVER:
        held.absent_since = now


_WITH_DRIVER: Final = frozenset({Phase.LAUNCHED, Phase.ENDED})


def _decide_new(
    actions: Actions,
    key: AttemptKey,
    order: Order | None,
    seen: Observed | None,
    *,
    whole: bool,
) -> None:
    if seen is not None:
        if whole or order is not None:
            actions.adopt.append(key)
    elif order is not None and order.launch is None:
        actions.cancel.append(key)
    elif order is not None and order.launch is not _RUNS_ALREADY:
        actions.start.append(order)


def _decide_held(
    actions: Actions,
    key: AttemptKey,
    seen: Observed | None,
    mine: Held,
    *,
    unwanted: bool,
    gone: bool,
) -> None:
    if mine.phase is Phase.PREPARING:
        if unwanted:
            actions.cancel.append(key)
    elif seen is not None and seen.state.over:
        actions.ended.append(seen)
    elif mine.phase is Phase.LAUNCHED:
        if seen is None and gone:
            # Never confirmed and told to stop: the driver's silence says that it never began.
            (actions.lost if mine.confirmed or not unwanted else actions.cancel).append(key)
        elif unwanted and not mine.stopping:
            actions.stop.append(key)


def _decide_ended(
    actions: Actions, key: AttemptKey, seen: Observed | None, mine: Held, *, unwanted: bool
) -> None:
    if mine.storing and unwanted:
        actions.cancel.append(key)
    elif seen is not None and not seen.state.over:
        # Declared ended, and alive after all: it must not go on beside its successor.
        if not mine.stopping:
            actions.stop.append(key)
    elif mine.settled and not mine.forgetting:
        actions.forget.append(key)
