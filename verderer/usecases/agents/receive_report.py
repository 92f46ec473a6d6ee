"""Receive: facts of an agent move attempts, end steps, and release what waited for them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from verderer.core.errors import Conflict
from verderer.core.model.actor import Actor
from verderer.core.model.attempt import ATTEMPT_MOVES, AttemptKey, AttemptState, End
from verderer.core.progress import Again, Over, after_attempt
from verderer.store.database import Tx
from verderer.store.tables import (
    attempts,
    audit,
    clusters,
    orders,
    results,
    runs,
    steps,
)
from verderer.usecases.context import Context
from verderer.usecases.settle import Ends, queue_again, settle_ends


@dataclass(frozen=True, slots=True, kw_only=True)
class Fact:
    """An attempt has reached a state, says its agent."""

    key: AttemptKey
    state: AttemptState
    node: str = ""
    at: datetime | None = None
    end: End | None = None
    """Set exactly when `state` is over."""
    outputs: tuple[tuple[str, str, int, int, str], ...] = ()
    """Name, object key, bytes, files, SHA-256."""


@dataclass(slots=True)
class _Work:
    """One report on its way through the transaction."""

    held: Mapping[AttemptKey, attempts.Held]
    refused: dict[AttemptKey, str] = field(default_factory=dict)
    moved: dict[AttemptKey, attempts.Change] = field(default_factory=dict)
    ended: dict[AttemptKey, attempts.Change] = field(default_factory=dict)
    outputs: list[tuple[object, ...]] = field(default_factory=list)
    entries: list[audit.Entry] = field(default_factory=list)


async def receive_facts(
    ctx: Context, actor: Actor, *, epoch: int, facts: Sequence[Fact]
) -> dict[AttemptKey, str]:
    """Apply what changed and return, by attempt, why a fact changed nothing.

    Safe to repeat: a fact that was applied before is passed over.

    Raises:
        Conflict: `stale_epoch`: another instance speaks for the cluster now; nothing was written.
    """
    async with ctx.db.transaction() as tx:
        if not await clusters.holds_epoch(tx, actor.id, epoch):
            raise Conflict("another agent speaks for this cluster now", code="stale_epoch")
        # Everybody who ends steps takes runs first, then what belongs to them.
        ending = sorted({f.key.run for f in facts if f.state.over})
        locked = await runs.lock(tx, ending) if ending else {}
        held = await attempts.lock(tx, actor.id, list({f.key for f in facts}))
        work = _sort(held, facts)
        if work.moved:
            await attempts.move(tx, list(work.moved.values()))
            await steps.started(tx, _begun(work.moved.values()))
        ends = Ends()
        if work.ended:
            ends = await _end(ctx, tx, work, locked)
        await audit.add(tx, actor, work.entries + ends.entries)
        # Placement waits for these rows, so they come last.
        await _give_back(ctx, tx, actor.id, [work.held[key] for key in work.ended])
    topics = {f"run:{key.run}" for key in (*work.moved, *work.ended)}
    topics |= {f"project:{project}" for project in ends.projects}
    if work.ended:
        topics.add("queue")  # room came free, or a step became ready
    ctx.wakeups.wake(topics)
    return work.refused


def _sort(held: Mapping[AttemptKey, attempts.Held], facts: Iterable[Fact]) -> _Work:
    """Fold the facts of each attempt into one change."""
    work = _Work(held)
    states = {key: h.state for key, h in held.items()}
    for fact in facts:
        before = states.get(fact.key)
        if before is None:
            work.refused[fact.key] = "this cluster was not given such an attempt"
        elif before is fact.state or before.over:
            pass  # said before
        elif fact.state not in ATTEMPT_MOVES[before]:
            pass  # it is being stopped; that it once ran is no news
        else:
            states[fact.key] = fact.state
            _fold(work, held[fact.key], fact)
    return work


def _fold(work: _Work, held: attempts.Held, fact: Fact) -> None:
    earlier = work.moved.get(fact.key)
    started = earlier.started_at if earlier else None
    if fact.state is AttemptState.RUNNING:
        started = fact.at
    change = attempts.Change(
        step=held.step,
        number=fact.key.number,
        state=fact.state,
        node=fact.node or (earlier.node if earlier else ""),
        started_at=started,
        ended_at=fact.at if fact.state.over else None,
        end=fact.end,
    )
    if fact.state.over:
        work.moved.pop(fact.key, None)
        work.ended[fact.key] = change
        work.outputs += [(held.step, fact.key.number, *output) for output in fact.outputs]
    else:
        work.moved[fact.key] = change
    work.entries.append(
        audit.Entry(
            action=f"attempt.{fact.state.value}",
            project=held.project,
            run=fact.key.run,
            step=fact.key.step,
            attempt=fact.key.number,
            result="ok" if fact.end is None else fact.end.cause.value,
        )
    )


async def _end(ctx: Context, tx: Tx, work: _Work, locked: Mapping[int, runs.LockedRun]) -> Ends:
    await attempts.end(tx, list(work.ended.values()))
    await results.add_artifacts(tx, work.outputs)
    ends = Ends(locked=locked)
    again: list[steps.Another] = []
    begun: list[attempts.Change] = []
    for key, change in work.ended.items():
        run, held = locked[key.run], work.held[key]
        assert change.end is not None  # noqa: S101 - `_fold` puts only ends here
        spec = (await ctx.pipelines.load(tx, run.document)).steps[held.template]
        verdict = after_attempt(
            change.end,
            spec,
            number=key.number,
            failures=held.failures,
            run_state=run.state,
        )
        if isinstance(verdict, Again):
            failed = int(verdict.failed)
            again.append(steps.Another(id=held.step, wait_s=verdict.wait_s, failed=failed))
            begun.append(change)
        else:
            ends.add(key.run, _ended(change, verdict))
    if again:
        await steps.started(tx, _begun(begun))
        await queue_again(tx, again, locked)
    await settle_ends(ctx, tx, ends)
    return ends


def _ended(change: attempts.Change, verdict: Over) -> steps.Ended:
    return steps.Ended(
        id=change.step,
        state=verdict.state,
        note=verdict.note,
        failed=int(change.state is not AttemptState.SUCCEEDED),
        started_at=change.started_at,
    )


def _begun(changes: Iterable[attempts.Change]) -> list[tuple[int, datetime]]:
    return [(c.step, c.started_at) for c in changes if c.started_at is not None]


async def _give_back(ctx: Context, tx: Tx, cluster: int, over: Sequence[attempts.Held]) -> None:
    total_of = await ctx.pipelines.totals(tx, {held.shape for held in over})
    returns = [orders.Return(h.group, h.project, total_of[h.shape]) for h in over]
    await orders.give_room(tx, cluster, returns)
