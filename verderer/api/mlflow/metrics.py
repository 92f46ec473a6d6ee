"""`runs/log-batch`, `runs/log-metric` and the histories that come of them."""

from __future__ import annotations

from verderer.api.mlflow import answers
from verderer.api.mlflow.documents import (
    LogBatch,
    LogMetric,
    Metric,
    SearchDatasets,
    pairs,
)
from verderer.api.mlflow.numbers import int64
from verderer.api.mlflow.route import Call, endpoint, hot_endpoints
from verderer.core.access import Action
from verderer.core.tracking.samples import Columns, Point
from verderer.usecases.context import Context
from verderer.usecases.tracking import histories, record
from verderer.usecases.tracking.caller import Caller
from verderer.usecases.tracking.record import Batch


async def log_batch(ctx: Context, caller: Caller, body: LogBatch) -> None:
    """Write metrics, parameters and tags, all or none."""
    given = body.metrics or ()
    batch = Batch(
        samples=Columns(
            [m.key or "" for m in given],
            [m.value for m in given],
            [m.timestamp for m in given],
            [m.step or 0 for m in given],
        ),
        measured={i: _measured(m) for i, m in enumerate(given) if m.model_id},
        params=pairs(body.params),
        tags=pairs(body.tags),
    )
    await record.log_batch(ctx, caller, body.uid, batch)


async def log_metric(ctx: Context, caller: Caller, body: LogMetric) -> None:
    """Write one sample."""
    batch = Batch(
        samples=Columns([body.key or ""], [body.value], [body.timestamp], [body.step or 0]),
        measured={0: _measured(body)} if body.model_id else None,
    )
    await record.log_batch(ctx, caller, body.uid, batch)


async def get_history(call: Call) -> object:
    """One metric of one run, all of it or in pages."""
    key = call.asked("metric_key")
    found, token = await histories.read_history(
        call.ctx,
        call.caller,
        call.asked("run_id") or call.asked("run_uuid"),
        key,
        limit=int64(call.asked("max_results"), "max_results"),
        token=call.asked("page_token"),
    )
    return answers.page("metrics", [answers.point(key or "", one) for one in found], token)


async def get_history_bulk(call: Call) -> object:
    """One metric of several runs."""
    key = call.asked("metric_key")
    found = await histories.read_histories(
        call.ctx,
        call.caller,
        call.all_asked("run_id"),
        key,
        limit=int64(call.asked("max_results"), "max_results"),
    )
    return _with_runs(key, found)


async def get_history_interval(call: Call) -> object:
    """One metric of several runs, spread evenly."""
    key = call.asked("metric_key")
    found = await histories.read_spread(
        call.ctx,
        call.caller,
        call.all_asked("run_ids"),
        key,
        steps=(
            int64(call.asked("start_step"), "start_step"),
            int64(call.asked("end_step"), "end_step"),
        ),
        limit=int64(call.asked("max_results"), "max_results"),
    )
    return _with_runs(key, found)


async def search_datasets(call: Call) -> object:
    """Data sets that runs of experiments read."""
    body = await call.body(SearchDatasets)
    found = await histories.read_datasets(call.ctx, call.caller, body.experiment_ids or ())
    summaries = []
    for one in found:
        summary = {"experiment_id": str(one.experiment), "name": one.name, "digest": one.digest}
        summaries.append(summary | ({"context": one.context} if one.context else {}))
    return {"dataset_summaries": summaries}


def _measured(given: Metric | LogMetric) -> tuple[str, str | None, str | None]:
    return (given.model_id or "", given.dataset_name, given.dataset_digest)


def _with_runs(key: str | None, found: list[tuple[str, Point]]) -> object:
    return {"metrics": [answers.point(key or "", point, uid) for uid, point in found]}


_READ = Action.TRACKING_READ

ROUTES = (
    *hot_endpoints("/mlflow/runs/log-batch", LogBatch, log_batch),
    *hot_endpoints("/mlflow/runs/log-metric", LogMetric, log_metric),
    endpoint("GET", "/mlflow/metrics/get-history", _READ, get_history),
    endpoint("GET", "/mlflow/metrics/get-history-bulk", _READ, get_history_bulk),
    endpoint("GET", "/mlflow/metrics/get-history-bulk-interval", _READ, get_history_interval),
    endpoint("POST", "/mlflow/experiments/search-datasets", _READ, search_datasets),
)
