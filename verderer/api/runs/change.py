"""POST /runs/{run}/cancel and /retry."""

from __future__ import annotations

from litestar import post
from litestar.params import JSONBody

from verderer.api.auth import ActorArg, ContextArg
from verderer.api.runs.found import RunArg, the_run
from verderer.core.access import Action
from verderer.usecases.cancel_run import cancel as cancel_run
from verderer.usecases.retry_run import retry as retry_run
from verderer.wire.runs import RetryIn, RunStateOut


@post(
    "/runs/{run:str}/cancel",
    opt={"action": Action.RUN_CANCEL},
    status_code=202,
    tags=["runs"],
    summary="Cancel a run",
)
async def cancel(context: ContextArg, actor: ActorArg, run: RunArg) -> RunStateOut:
    """Ask a run to end. What waits ends now; what runs is `cancelling` until its agent confirms.

    Safe to repeat. 409 `illegal_move` when the run is over.
    """
    async with context.db.reading() as tx:
        found = await the_run(tx, actor, run)
    return RunStateOut(run, (await cancel_run(context, actor, found.id)).value)


@post(
    "/runs/{run:str}/retry",
    opt={"action": Action.RUN_RETRY},
    status_code=202,
    tags=["runs"],
    summary="Retry a run",
)
async def retry(
    context: ContextArg,
    actor: ActorArg,
    run: RunArg,
    data: JSONBody[RetryIn | None] = None,
) -> RunStateOut:
    """Open a run that is over again: what did not succeed, or with `all` everything.

    409 `illegal_move` while it is not over, `conflict` when there is nothing to retry.
    """
    async with context.db.reading() as tx:
        found = await the_run(tx, actor, run)
    everything = data is not None and data.all
    state = await retry_run(context, actor, found.id, everything=everything)
    return RunStateOut(run, state.value)


ROUTES = (cancel, retry)
