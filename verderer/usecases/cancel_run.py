"""Cancel: what waits ends now, what runs is asked to end and kept until its agent confirms."""

from __future__ import annotations

from collections import Counter

from verderer.core.access import Action
from verderer.core.model.actor import Actor
from verderer.core.model.run import RunState, check_run_move
from verderer.core.progress import run_end
from verderer.store.tables import attempts, audit, clusters, queue, runs, steps
from verderer.usecases.context import Context
from verderer.usecases.own_run import lock_own


async def cancel(ctx: Context, actor: Actor, run_id: int) -> RunState:
    """Ask a run to end and return the state that it is in now. Safe to repeat.

    Raises:
        NotFound, NotAllowed: it is not the actor's to cancel.
        IllegalMove: it is over already.
    """
    async with ctx.db.transaction() as tx:
        run = await lock_own(tx, actor, Action.RUN_CANCEL, run_id)
        if run.state is RunState.CANCELLING:
            return run.state
        check_run_move(run.state, RunState.CANCELLING)
        # Nothing of it may be placed from here on; only then is it known where it runs.
        await queue.drop_run(tx, run_id)
        closed = await steps.cancel_waiting(tx, run_id)
        await clusters.raise_revisions(tx, await attempts.clusters_of_run(tx, run_id))
        stopped = await attempts.stop_run(tx, run_id)
        end = run_end(RunState.CANCELLING, opened=run.open - len(closed), failed=run.failed)
        state = end or RunState.CANCELLING
        await runs.settle(tx, [runs.Settled(run=run_id, closed=len(closed), failed=0, state=state)])
        changes: Counter[tuple[int, RunState]] = Counter()
        changes[run.project, run.state] -= 1
        changes[run.project, state] += 1
        await runs.count(tx, changes)
        entries = [_entry(run, f"run.{state.value}")]
        entries += [_entry(run, "step.cancelled", step=idx) for idx in closed]
        entries += [
            _entry(run, "attempt.stopping", step=row["idx"], attempt=row["number"])
            for row in stopped
        ]
        await audit.add(tx, actor, entries)
    topics = {f"cluster:{row['cluster_id']}" for row in stopped}
    ctx.wakeups.wake(topics | {f"run:{run_id}", f"project:{run.project}"})
    return state


def _entry(
    run: runs.LockedRun, action: str, *, step: int | None = None, attempt: int | None = None
) -> audit.Entry:
    return audit.Entry(action=action, project=run.project, run=run.id, step=step, attempt=attempt)
