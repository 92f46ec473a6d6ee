"""`runs/…`, but what writes samples."""

from __future__ import annotations

from verderer.api.mlflow import answers
from verderer.api.mlflow.documents import (
    CreateRun,
    DatasetInput,
    KeyValue,
    LogInputs,
    LogModel,
    LogOutputs,
    RunRef,
    SearchRuns,
    UpdateRun,
    pairs,
)
from verderer.api.mlflow.route import Call, endpoint
from verderer.core.access import Action
from verderer.core.errors import Invalid
from verderer.core.tracking.entities import Dataset, parse_stage, parse_status
from verderer.usecases.tracking import look_up, record, runs
from verderer.usecases.tracking.record import Batch
from verderer.usecases.tracking.runs import Beginning

_MAX_INPUTS = 64 * 1024 * 1024
"""Bytes of a request with data sets: the profile of one alone may have 16 MB."""


async def create(call: Call) -> object:
    """Begin a run."""
    body = await call.body(CreateRun)
    beginning = Beginning(
        experiment=body.experiment_id,
        name=body.run_name,
        user=body.user_id,
        start_ms=body.start_time,
        tags=pairs(body.tags),
    )
    made, data = await runs.create_run(call.ctx, call.caller, beginning)
    return {"run": answers.run(made, data)}


async def update(call: Call) -> object:
    """Change status, end or name."""
    body = await call.body(UpdateRun)
    run = await runs.update_run(
        call.ctx,
        call.caller,
        body.uid,
        status=None if body.status is None else parse_status(body.status),
        end_ms=body.end_time,
        name=body.run_name,
    )
    return {"run_info": answers.run_info(run)}


async def get(call: Call) -> object:
    """One by id."""
    uid = call.asked("run_id") or call.asked("run_uuid")
    run, data = await look_up.read_run(call.ctx, call.caller, uid)
    return {"run": answers.run(run, data)}


async def search(call: Call) -> object:
    """A page of them."""
    body = await call.body(SearchRuns)
    found, token = await look_up.search_runs(
        call.ctx,
        call.caller,
        experiments_wanted=body.experiment_ids or (),
        filter_text=body.filter,
        order_by=body.order_by or (),
        stage=parse_stage(body.run_view_type),
        limit=body.max_results,
        token=body.page_token,
    )
    return answers.page("runs", [answers.run(run, data) for run, data in found], token)


async def delete(call: Call) -> object:
    """Delete one; what it reported stays."""
    await runs.delete_run(call.ctx, call.caller, (await call.body(RunRef)).uid)
    return {}


async def restore(call: Call) -> object:
    """Bring one back."""
    await runs.restore_run(call.ctx, call.caller, (await call.body(RunRef)).uid)
    return {}


async def log_parameter(call: Call) -> object:
    """Write a parameter."""
    body = await call.body(KeyValue)
    batch = Batch(params=[(body.key, body.value)])
    await record.log_batch(call.ctx, call.caller, body.uid, batch)
    return {}


async def set_tag(call: Call) -> object:
    """Write a tag."""
    body = await call.body(KeyValue)
    batch = Batch(tags=[(body.key, body.value)])
    await record.log_batch(call.ctx, call.caller, body.uid, batch)
    return {}


async def delete_tag(call: Call) -> object:
    """Remove a tag."""
    body = await call.body(KeyValue)
    await runs.untag_run(call.ctx, call.caller, body.uid, body.key)
    return {}


async def log_model(call: Call) -> object:
    """Add to the history of models, as clients before MLflow 3 do."""
    body = await call.body(LogModel)
    await record.log_model(call.ctx, call.caller, body.uid, body.model_json)
    return {}


async def log_inputs(call: Call) -> object:
    """Note which data sets and models it read."""
    body = await call.body(LogInputs)
    await record.log_inputs(
        call.ctx,
        call.caller,
        body.uid,
        datasets=[_dataset(one, i) for i, one in enumerate(body.datasets or ())],
        read=[one.model_id for one in body.models or ()],
    )
    return {}


async def log_outputs(call: Call) -> object:
    """Note which models it made."""
    body = await call.body(LogOutputs)
    made = [(one.model_id, one.step or 0) for one in body.models or ()]
    await record.log_outputs(call.ctx, call.caller, body.uid, made)
    return {}


def _dataset(given: DatasetInput, i: int) -> Dataset:
    if given.dataset is None:
        raise Invalid(f"Missing value for required parameter 'datasets[{i}].dataset'.")
    return Dataset(
        name=given.dataset.name or "",
        digest=given.dataset.digest or "",
        source_type=given.dataset.source_type or "",
        source=given.dataset.source or "",
        schema=given.dataset.schema,
        profile=given.dataset.profile,
        tags=tuple((tag.key or "", tag.value or "") for tag in given.tags or ()),
    )


_READ, _WRITE = Action.TRACKING_READ, Action.TRACKING_WRITE

ROUTES = (
    endpoint("POST", "/mlflow/runs/create", _WRITE, create),
    endpoint("POST", "/mlflow/runs/update", _WRITE, update),
    endpoint("GET", "/mlflow/runs/get", _READ, get),
    endpoint("POST", "/mlflow/runs/search", _READ, search),
    endpoint("POST", "/mlflow/runs/delete", _WRITE, delete),
    endpoint("POST", "/mlflow/runs/restore", _WRITE, restore),
    endpoint("POST", "/mlflow/runs/log-parameter", _WRITE, log_parameter),
    endpoint("POST", "/mlflow/runs/set-tag", _WRITE, set_tag),
    endpoint("POST", "/mlflow/runs/delete-tag", _WRITE, delete_tag),
    endpoint("POST", "/mlflow/runs/log-model", _WRITE, log_model),
    endpoint("POST", "/mlflow/runs/log-inputs", _WRITE, log_inputs, max_body=_MAX_INPUTS),
    endpoint("POST", "/mlflow/runs/outputs", _WRITE, log_outputs),
)
