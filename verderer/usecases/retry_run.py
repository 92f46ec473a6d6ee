"""Retry: a run that is over runs again, all of it or only what did not succeed."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence

from verderer.core.access import Action
from verderer.core.errors import Conflict
from verderer.core.model.actor import Actor
from verderer.core.model.run import RunState, check_run_move
from verderer.core.model.step import StepState
from verderer.core.opening import open_run
from verderer.store.database import Tx
from verderer.store.tables import audit, queue, runs, steps
from verderer.usecases.context import Context
from verderer.usecases.own_run import lock_own


async def retry(ctx: Context, actor: Actor, run_id: int, *, everything: bool) -> RunState:
    """Open a run again and return its new state.

    What succeeded stays as it is and its outputs are used, unless `everything` is to run again.
    Attempts of before stay in the history.

    Raises:
        NotFound, NotAllowed: it is not the actor's to retry.
        IllegalMove: it is not over.
        Conflict: there is nothing to retry.
    """
    async with ctx.db.transaction() as tx:
        run = await lock_own(tx, actor, Action.RUN_RETRY, run_id)
        check_run_move(run.state, RunState.QUEUED)
        rows = await steps.of_run(tx, run_id)
        if everything:
            waits = await _all_again(ctx, tx, run, [row["id"] for row in rows])
        else:
            states = {row["id"]: StepState(row["state"]) for row in rows}
            waits = waits_of_failed(states, await steps.edges_of_run(tx, run_id))
        if not waits:
            raise Conflict(
                "no step of this run failed or was cancelled",
                hint="Retry all of it with --all, or clone it.",
            )
        await _reopen(tx, run, waits)
        changes = Counter({(run.project, run.state): -1, (run.project, RunState.QUEUED): 1})
        await runs.count(tx, changes)
        detail = {"steps": len(waits), "everything": everything}
        await audit.add(
            tx,
            actor,
            [audit.Entry(action="run.retried", project=run.project, run=run_id, detail=detail)],
        )
    ctx.wakeups.wake({"queue", f"run:{run_id}", f"project:{run.project}"})
    return RunState.QUEUED


async def _all_again(
    ctx: Context, tx: Tx, run: runs.LockedRun, ids: Sequence[int]
) -> dict[int, int]:
    """Every step opens as it did the first time; `ids` are in the order of the steps."""
    pipeline = await ctx.pipelines.load(tx, run.document)
    expansion = ctx.pipelines.expand(run.document, pipeline, run.parameters)
    opening = open_run(pipeline, expansion.instances, expansion.edges, expansion.parameters)
    return {
        step: first.waits for step, first in zip(ids, opening, strict=True) if not first.state.over
    }


async def _reopen(tx: Tx, run: runs.LockedRun, waits: Mapping[int, int]) -> None:
    rows = await steps.reset(tx, waits)
    await runs.reopen(tx, run.id, opened=len(rows))
    ready = [
        queue.Waiting(row["id"], run.id, run.project, row["shape_id"], run.group, run.priority)
        for row in rows
        if row["state"] == "ready"
    ]
    await queue.add(tx, ready)


def waits_of_failed(
    states: Mapping[int, StepState], edges: Iterable[tuple[int, int]]
) -> dict[int, int]:
    """Steps to open again, each with how many of these it waits for; edges are (before, after).

    They are what failed or was cancelled, and what was skipped because of that. A step whose own
    condition was false stays skipped.
    """
    after: defaultdict[int, list[int]] = defaultdict(list)
    for first, second in edges:
        after[first].append(second)
    opened = {step for step, s in states.items() if s in (StepState.FAILED, StepState.CANCELLED)}
    frontier = list(opened)
    while frontier:
        for successor in after[frontier.pop()]:
            if successor not in opened and states[successor] is not StepState.BLOCKED:
                opened.add(successor)
                frontier.append(successor)
    waits = dict.fromkeys(sorted(opened), 0)
    for first in opened:
        for second in after[first]:
            if second in waits:
                waits[second] += 1
    return waits
