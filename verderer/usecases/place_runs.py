"""Place: the leader proposes from its resident snapshot, and writes what still holds."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass

from verderer.core.errors import Conflict
from verderer.core.explain import Reason, Why
from verderer.core.model.actor import Actor, ActorKind
from verderer.core.placement import HoldKey, Plan, place
from verderer.store.snapshot import Snapshot
from verderer.store.tables import audit, holds, orders, queue, runs
from verderer.usecases.context import Context

LEASE = "placement"
_ACTOR = Actor(kind=ActorKind.SYSTEM, name="placement")
_MOST = 2000
"""Assignments in one transaction: large enough to share its cost, small enough to stay short."""
_REFRESH_S = 5.0


@dataclass(frozen=True, slots=True)
class Round:
    """What one round did."""

    placed: int
    waiting: int
    more: bool
    """Come again at once."""
    wake_in_s: float | None
    """Until the next paused step is due."""


class Placer:
    """One leader's term: it starts from nothing and ends with its lease."""

    def __init__(self, ctx: Context, *, epoch: int) -> None:
        self._ctx = ctx
        self._epoch = epoch
        self.snapshot = Snapshot()
        self._told: dict[HoldKey, tuple[tuple[Reason, ...], float]] = {}
        self._begun = False

    async def round(self) -> Round:
        """Take in what is new, place what fits, explain the rest.

        Raises:
            Conflict: the lease is lost; nothing was written, and this term is over.
            Fault: PostgreSQL did not answer; call again.
        """
        # Pauses are measured by the database and waited for by a clock that never jumps.
        now = time.monotonic()
        async with self._ctx.db.reading() as tx:
            await self.snapshot.advance(tx, now=now)
            wake_at = self.snapshot.wake_later(now)
            if len(self.snapshot) or self._told:
                await self.snapshot.look_around(tx)
        seen = self.snapshot
        plan = place(seen.lanes, seen.places, limit=_MOST, bounds=seen.bounds, now=seen.now)
        try:
            placed = await self._write(plan) if plan.assignments else 0
        except Conflict as e:
            if e.code != "no_room":
                raise
            return Round(0, len(self.snapshot), True, None)  # nothing was written: look again
        await self._explain(plan, now)
        wake_in_s = None if wake_at is None else max(0.0, wake_at - now)
        return Round(placed, len(self.snapshot), plan.more, wake_in_s)

    async def _write(self, plan: Plan) -> int:
        lanes = self.snapshot.lanes
        asks = {key: lanes[key].shape.total for key in {a.lane for a in plan.assignments}}
        proposals = [
            orders.Proposal(a.step, a.cluster, a.lane[2], asks[a.lane]) for a in plan.assignments
        ]
        rules = self.snapshot.rules
        async with self._ctx.db.transaction() as tx:
            applied = await orders.apply(tx, proposals, lease=LEASE, epoch=self._epoch, rules=rules)
            begun = await runs.begin(tx, sorted({o.run for o in applied.ordered}))
            details = {p.id: {"cluster": p.name} for p in self.snapshot.places}
            await audit.add(tx, _ACTOR, [_entry(o, details[o.cluster]) for o in applied.ordered])
            # Rows that others wait for come last.
            await runs.count(tx, begun)
            await orders.take_room(tx, applied)
        await self._settle(plan, applied)
        topics = {f"cluster:{o.cluster}" for o in applied.ordered}
        topics |= {f"run:{o.run}" for o in applied.ordered}
        topics |= {f"project:{project}" for project, _ in begun}
        self._ctx.wakeups.wake(topics)
        return len(applied.ordered)

    async def _settle(self, plan: Plan, applied: orders.Applied) -> None:
        """Take what was proposed out of the lanes; put back what could not be written.

        What was neither written nor refused has left the queue, as a rule. A row that somebody
        held at that moment, and let go unchanged, is still there and waits again.
        """
        for assignment in plan.assignments:
            self.snapshot.lanes[assignment.lane].drop_head(1)
        lane_of = {a.step: a.lane for a in plan.assignments}
        back = set(applied.no_room)
        passed = lane_of.keys() - back - {o.step for o in applied.ordered}
        if passed:
            async with self._ctx.db.reading() as tx:
                back |= set(await queue.still_there(tx, sorted(passed)))
        now = self._ctx.clock().timestamp()
        for step in sorted(back):
            self.snapshot.put_back(lane_of[step], [step], now)

    async def _explain(self, plan: Plan, now: float) -> None:
        """Write why lanes wait, when the codes change at once, and new numbers now and then."""
        reasons: dict[HoldKey, tuple[Reason, ...]] = {}
        holds = {(key[0], key[1], key[2]): found for key, found in plan.holds.items()}
        for key, found in holds.items():
            why = found or (Reason(why=Why.NO_CLUSTER),)
            told = self._told.get(key)
            if (
                told is None
                or _codes(told[0]) != _codes(why)
                or (told[0] != why and now - told[1] >= _REFRESH_S)
            ):
                reasons[key] = why
        over = [key for key in self._told if key not in holds]
        if not (reasons or over) and self._begun:
            return
        await self._write_holds(reasons, over)
        for key in over:
            del self._told[key]
        self._told |= {key: (why, now) for key, why in reasons.items()}

    async def _write_holds(
        self, reasons: Mapping[HoldKey, tuple[Reason, ...]], over: list[HoldKey]
    ) -> None:
        async with self._ctx.db.transaction() as tx:
            if not self._begun:
                await holds.drop_all(tx)
            await holds.put(tx, {k: [r.as_dict() for r in why] for k, why in reasons.items()})
            await holds.drop(tx, over)
        self._begun = True


def _codes(reasons: tuple[Reason, ...]) -> list[tuple[Why, str, str]]:
    return [(r.why, r.cluster, r.resource) for r in reasons]


def _entry(o: orders.Ordered, detail: Mapping[str, str]) -> audit.Entry:
    return audit.Entry(
        action="attempt.assigned",
        project=o.project,
        run=o.run,
        step=o.idx,
        attempt=o.number,
        detail=detail,
    )
