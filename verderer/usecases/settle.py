"""Settle: what the ends of steps mean for their successors and their runs, in one transaction.

A predecessor's end and its successors' release are never two transactions, so nothing has to be
found and mended after a crash.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from verderer.core.model.run import RunState, check_run_move
from verderer.core.model.step import StepState
from verderer.core.pipeline.expressions import combined_state
from verderer.core.progress import Over, after_needs, run_end
from verderer.store.database import Row, Tx
from verderer.store.tables import audit, queue, runs, steps
from verderer.store.tables.steps import Ended
from verderer.usecases.context import Context


@dataclass(slots=True)
class Ends:
    """Steps that end in this transaction, and what follows from it."""

    locked: Mapping[int, runs.LockedRun] = field(default_factory=dict)
    steps: list[Ended] = field(default_factory=list)
    settled: dict[int, runs.Settled] = field(default_factory=dict)
    entries: list[audit.Entry] = field(default_factory=list)
    projects: set[int] = field(default_factory=set)
    """Projects of which a run changed its state."""

    def add(self, run: int, ended: Ended) -> None:
        """Count one step's end."""
        self.steps.append(ended)
        self.count(run, closed=1, failed=ended.failed)

    def count(self, run: int, *, closed: int, failed: int = 0) -> None:
        """Count ends of steps that the caller writes itself."""
        settled = self.settled.setdefault(
            run, runs.Settled(run=run, closed=0, failed=0, state=self.locked[run].state)
        )
        settled.closed += closed
        settled.failed += failed


async def settle_ends(ctx: Context, tx: Tx, ends: Ends) -> None:
    """Write the ends, decide every step that waited for them alone, and end runs.

    The caller holds the runs in `ends.locked`.
    """
    frontier = ends.steps
    while frontier:
        await steps.end(tx, frontier)
        known = len(ends.steps)
        if any(ends.locked[run].steps > 1 for run in ends.settled):
            await _decide_successors(ctx, tx, ends, [e.id for e in frontier])
        frontier = ends.steps[known:]
    await _settle_runs(tx, ends)


async def _decide_successors(ctx: Context, tx: Tx, ends: Ends, ended: Sequence[int]) -> None:
    found = await steps.successors(tx, ended)
    due = [s for s in found if s.waits <= s.met]
    if blocked := [s for s in found if s.waits > s.met]:
        await steps.meet(tx, blocked)
    if not due:
        return
    needs = await steps.needs_of(tx, [s.id for s in due])
    released: list[int] = []
    for successor in due:
        run = ends.locked[successor.run]
        pipeline = await ctx.pipelines.load(tx, run.document)
        states: defaultdict[str, list[StepState]] = defaultdict(list)
        for template, state in needs[successor.id]:
            states[pipeline.steps[template].name].append(state)
        verdict = after_needs(
            pipeline.steps[successor.template],
            parameters=run.parameters,
            matrix=successor.matrix,
            needs={name: combined_state(several) for name, several in states.items()},
        )
        if isinstance(verdict, Over):
            over = Ended(id=successor.id, state=verdict.state, note=verdict.note)
            ends.add(successor.run, over)
        else:
            released.append(successor.id)
    if released:
        await _queue(tx, await steps.release(tx, released), ends.locked)


async def queue_again(
    tx: Tx, others: Sequence[steps.Another], locked: Mapping[int, runs.LockedRun]
) -> None:
    """Steps whose attempt is over wait for another, each for its seconds."""
    rows = await steps.again(tx, others)
    await _queue(tx, rows, locked, {a.id: a.wait_s for a in others})


async def _queue(
    tx: Tx,
    rows: Sequence[Row],
    locked: Mapping[int, runs.LockedRun],
    waits: Mapping[int, int] | None = None,
) -> None:
    waiting = [
        queue.Waiting(
            step=row["id"],
            run=row["run_id"],
            project=locked[row["run_id"]].project,
            shape=row["shape_id"],
            group=locked[row["run_id"]].group,
            priority=locked[row["run_id"]].priority,
            wait_s=(waits or {}).get(row["id"], 0),
        )
        for row in rows
    ]
    await queue.add(tx, waiting)


async def _settle_runs(tx: Tx, ends: Ends) -> None:
    changes: Counter[tuple[int, RunState]] = Counter()
    for settled in ends.settled.values():
        run = ends.locked[settled.run]
        after = run_end(
            run.state, opened=run.open - settled.closed, failed=run.failed + settled.failed
        )
        if after is None:
            continue
        settled.state = check_run_move(run.state, after)
        changes[run.project, run.state] -= 1
        changes[run.project, after] += 1
        ends.projects.add(run.project)
        ends.entries.append(
            audit.Entry(action=f"run.{after.value}", project=run.project, run=run.id)
        )
    await runs.settle(tx, sorted(ends.settled.values(), key=lambda s: s.run))
    await runs.count(tx, changes)
