"""Read the histories of metrics."""

from __future__ import annotations

from collections.abc import Sequence

from verderer.core.errors import Invalid
from verderer.core.tracking.limits import (
    MAX_HISTORY,
    MAX_RUNS_IN_BULK,
    MAX_SAMPLES_IN_BULK,
    MAX_SAMPLES_PER_RUN,
    PAGE_SAMPLES,
)
from verderer.core.tracking.names import check_key, parse_run_uid
from verderer.core.tracking.paging import page_token, parse_page_token
from verderer.core.tracking.samples import Point
from verderer.store.views.tracked import runs, samples
from verderer.usecases.context import Context
from verderer.usecases.tracking.caller import Caller, scope_of
from verderer.usecases.tracking.look_up import experiment_ids, visible_run

_MAX_EXPERIMENTS = 20
_MAX_SUMMARIES = 1_000


async def read_history(
    ctx: Context,
    caller: Caller,
    uid: str | None,
    key: str | None,
    *,
    limit: int | None = None,
    token: str | None = None,
) -> tuple[list[Point], str]:
    """One metric's samples by time, step and value, and the token of the next page.

    Without a limit it is all of them, as old clients expect, up to a million.

    Raises:
        Invalid: the limit or the token cannot be read.
        NotFound: the run is not the caller's to see.
    """
    wanted = check_key(key, "metric_key")
    offset = parse_page_token(token)
    if limit is not None and limit <= 0:
        raise Invalid(
            f"Invalid value {limit} for parameter 'max_results' supplied. "
            "It must be a positive integer."
        )
    size = MAX_HISTORY if limit is None else min(limit, PAGE_SAMPLES)
    async with ctx.db.reading() as tx:
        run = await visible_run(tx, caller, uid)
        scope = await scope_of(tx, caller)
        found = await samples.history(tx, scope, run.uid, wanted, offset=offset, limit=size + 1)
    if len(found) <= size:
        return found, ""
    return found[:size], page_token(offset + size)


async def read_histories(
    ctx: Context,
    caller: Caller,
    uids: Sequence[str],
    key: str | None,
    *,
    limit: int | None = None,
) -> list[tuple[str, Point]]:
    """The same metric of several runs, by run; runs that the caller does not see have none.

    Raises:
        Invalid: no run, too many, or no metric.
    """
    wanted = check_key(key, "metric_key")
    checked = _several(uids)
    most = MAX_SAMPLES_IN_BULK if limit is None else min(max(limit, 1), MAX_SAMPLES_IN_BULK)
    async with ctx.db.reading() as tx:
        scope = await scope_of(tx, caller)
        return await samples.histories(tx, scope, checked, wanted, limit=most)


async def read_spread(
    ctx: Context,
    caller: Caller,
    uids: Sequence[str],
    key: str | None,
    *,
    steps: tuple[int | None, int | None] = (None, None),
    limit: int | None = None,
) -> list[tuple[str, Point]]:
    """Samples of several runs spread evenly over their whole length, or between two steps.

    Raises:
        Invalid: no run, too many, no metric, one step alone, or a limit out of range.
    """
    wanted = check_key(key, "metric_key")
    checked = _several(uids)
    most = MAX_SAMPLES_PER_RUN if limit is None else limit
    if not 1 <= most <= MAX_SAMPLES_PER_RUN:
        raise Invalid(f"max_results must be between 1 and {MAX_SAMPLES_PER_RUN}.")
    low, high = steps
    if (low is None) != (high is None):
        raise Invalid("If either start step or end step are specified, both must be specified.")
    if low is not None and high is not None and low > high:
        raise Invalid(
            f"end_step must be greater than start_step. Found start_step={low} and end_step={high}."
        )
    between = (low, high) if low is not None and high is not None else None
    async with ctx.db.reading() as tx:
        for uid in checked:
            await visible_run(tx, caller, uid)
        scope = await scope_of(tx, caller)
        return await samples.spread(tx, scope, checked, wanted, steps=between, limit=most)


async def read_datasets(
    ctx: Context, caller: Caller, experiments: Sequence[str]
) -> list[runs.DatasetSummary]:
    """Data sets that the runs of experiments read.

    Raises:
        Invalid: no experiment, or more than 20.
    """
    if not 1 <= len(experiments) <= _MAX_EXPERIMENTS:
        raise Invalid(
            f"SearchDatasets request must specify 1 to {_MAX_EXPERIMENTS} experiment_ids. "
            f"Received {len(experiments)} experiment_ids."
        )
    async with ctx.db.reading() as tx:
        ids = await experiment_ids(tx, caller, experiments)
        scope = await scope_of(tx, caller)
        return await runs.dataset_summaries(tx, scope, ids, limit=_MAX_SUMMARIES)


def _several(uids: Sequence[str]) -> list[str]:
    if not 1 <= len(uids) <= MAX_RUNS_IN_BULK:
        raise Invalid(
            f"The request must specify 1 to {MAX_RUNS_IN_BULK} run ids. Received {len(uids)}."
        )
    return [parse_run_uid(uid) for uid in uids]
