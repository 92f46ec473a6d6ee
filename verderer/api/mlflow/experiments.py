"""`experiments/…`"""

from __future__ import annotations

from verderer.api.mlflow import answers
from verderer.api.mlflow.documents import (
    CreateExperiment,
    ExperimentRef,
    ExperimentTag,
    SearchExperiments,
    UpdateExperiment,
    pairs,
)
from verderer.api.mlflow.numbers import int64
from verderer.api.mlflow.route import Call, endpoint
from verderer.core.access import Action
from verderer.core.tracking.entities import parse_stage
from verderer.usecases.tracking import experiments, look_up


async def create(call: Call) -> object:
    """Make one and answer with its id."""
    body = await call.body(CreateExperiment)
    made = await experiments.create_experiment(
        call.ctx,
        call.caller,
        name=body.name,
        location=body.artifact_location,
        tags=pairs(body.tags),
    )
    return {"experiment_id": str(made)}


async def get(call: Call) -> object:
    """One by id."""
    found = await look_up.read_experiment(call.ctx, call.caller, call.asked("experiment_id"))
    return {"experiment": answers.experiment(found)}


async def get_by_name(call: Call) -> object:
    """One by name."""
    name = call.asked("experiment_name")
    found = await look_up.read_experiment_named(call.ctx, call.caller, name)
    return {"experiment": answers.experiment(found)}


async def search(call: Call) -> object:
    """A page of them."""
    return await _search(call, await call.body(SearchExperiments))


async def search_by_query(call: Call) -> object:
    """The same for old clients, which ask in the address."""
    body = SearchExperiments(
        max_results=int64(call.asked("max_results"), "max_results"),
        page_token=call.asked("page_token"),
        filter=call.asked("filter"),
        order_by=call.all_asked("order_by"),
        view_type=call.asked("view_type"),
    )
    return await _search(call, body)


async def update(call: Call) -> object:
    """Rename one."""
    body = await call.body(UpdateExperiment)
    await experiments.rename_experiment(call.ctx, call.caller, body.experiment_id, body.new_name)
    return {}


async def delete(call: Call) -> object:
    """Delete one with its runs."""
    body = await call.body(ExperimentRef)
    await experiments.delete_experiment(call.ctx, call.caller, body.experiment_id)
    return {}


async def restore(call: Call) -> object:
    """Bring one back with its runs."""
    body = await call.body(ExperimentRef)
    await experiments.restore_experiment(call.ctx, call.caller, body.experiment_id)
    return {}


async def set_tag(call: Call) -> object:
    """Write a tag."""
    body = await call.body(ExperimentTag)
    await experiments.tag_experiment(
        call.ctx, call.caller, body.experiment_id, body.key, body.value
    )
    return {}


async def delete_tag(call: Call) -> object:
    """Remove a tag."""
    body = await call.body(ExperimentTag)
    await experiments.untag_experiment(call.ctx, call.caller, body.experiment_id, body.key)
    return {}


async def _search(call: Call, body: SearchExperiments) -> object:
    found, token = await look_up.search_experiments(
        call.ctx,
        call.caller,
        filter_text=body.filter,
        order_by=body.order_by or (),
        stage=parse_stage(body.view_type),
        limit=body.max_results,
        token=body.page_token,
    )
    return answers.page("experiments", [answers.experiment(one) for one in found], token)


_READ, _WRITE = Action.TRACKING_READ, Action.TRACKING_WRITE

ROUTES = (
    endpoint("POST", "/mlflow/experiments/create", _WRITE, create),
    endpoint("GET", "/mlflow/experiments/get", _READ, get),
    endpoint("GET", "/mlflow/experiments/get-by-name", _READ, get_by_name),
    endpoint("POST", "/mlflow/experiments/search", _READ, search),
    endpoint("GET", "/mlflow/experiments/search", _READ, search_by_query),
    endpoint("GET", "/mlflow/experiments/list", _READ, search_by_query),
    endpoint("POST", "/mlflow/experiments/update", _WRITE, update),
    endpoint("POST", "/mlflow/experiments/delete", _WRITE, delete),
    endpoint("POST", "/mlflow/experiments/restore", _WRITE, restore),
    endpoint("POST", "/mlflow/experiments/set-experiment-tag", _WRITE, set_tag),
    endpoint("POST", "/mlflow/experiments/delete-experiment-tag", _WRITE, delete_tag),
)
