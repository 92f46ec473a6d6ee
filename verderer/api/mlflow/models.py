"""`logged-models/…`"""

from __future__ import annotations

from verderer.api.mlflow import answers
from verderer.api.mlflow.documents import (
    CreateModel,
    FinalizeModel,
    ModelPairs,
    SearchModels,
    pairs,
)
from verderer.api.mlflow.route import Call, endpoint
from verderer.core.access import Action
from verderer.core.errors import Invalid
from verderer.core.tracking.entities import ModelStatus
from verderer.usecases.tracking import look_up, models
from verderer.usecases.tracking.models import Announced, OrderBy

_STATUS = {
    "LOGGED_MODEL_PENDING": ModelStatus.PENDING,
    "1": ModelStatus.PENDING,
    "LOGGED_MODEL_READY": ModelStatus.READY,
    "2": ModelStatus.READY,
    "LOGGED_MODEL_UPLOAD_FAILED": ModelStatus.FAILED,
    "3": ModelStatus.FAILED,
}


async def create(call: Call) -> object:
    """Announce a model whose files will follow."""
    body = await call.body(CreateModel)
    announced = Announced(
        experiment=body.experiment_id,
        name=body.name,
        model_type=body.model_type,
        source_run=body.source_run_id,
        params=pairs(body.params),
        tags=pairs(body.tags),
    )
    made = await models.create_model(call.ctx, call.caller, announced)
    return {"model": answers.model(made)}


async def get(call: Call) -> object:
    """One by id."""
    deleted_too = (call.asked("allow_deleted") or "").lower() == "true"
    found = await look_up.read_model(
        call.ctx, call.caller, call.part("model_id"), deleted_too=deleted_too
    )
    return {"model": answers.model(found)}


async def finalize(call: Call) -> object:
    """Say whether its files are there."""
    body = await call.body(FinalizeModel)
    status = _STATUS.get(str(body.status))
    if status is None:
        raise Invalid("Invalid value for parameter 'status' supplied.")
    found = await models.finalize_model(call.ctx, call.caller, call.part("model_id"), status)
    return {"model": answers.model(found)}


async def delete(call: Call) -> object:
    """Delete one."""
    await models.delete_model(call.ctx, call.caller, call.part("model_id"))
    return {}


async def set_params(call: Call) -> object:
    """Write parameters."""
    body = await call.body(ModelPairs)
    model_id = call.part("model_id")
    await models.set_model_params(call.ctx, call.caller, model_id, pairs(body.params))
    return {}


async def set_tags(call: Call) -> object:
    """Write tags."""
    body = await call.body(ModelPairs)
    model_id = call.part("model_id")
    await models.set_model_tags(call.ctx, call.caller, model_id, pairs(body.tags))
    found = await look_up.read_model(call.ctx, call.caller, model_id)
    return {"model": answers.model(found)}


async def delete_tag(call: Call) -> object:
    """Remove a tag."""
    model_id = call.part("model_id")
    # Keys may hold slashes, and a path parameter begins with one.
    key = call.part("tag_key").removeprefix("/")
    await models.remove_model_tag(call.ctx, call.caller, model_id, key)
    return {}


async def search(call: Call) -> object:
    """A page of them."""
    body = await call.body(SearchModels)
    found, token = await models.search_models(
        call.ctx,
        call.caller,
        experiments=body.experiment_ids or (),
        filter_text=body.filter,
        datasets=[(d.dataset_name or "", d.dataset_digest) for d in body.datasets or ()],
        order_by=[
            OrderBy(
                field=one.field_name or "",
                ascending=one.ascending is not False,
                dataset=one.dataset_name,
                digest=one.dataset_digest,
            )
            for one in body.order_by or ()
        ],
        limit=body.max_results,
        token=body.page_token,
    )
    return answers.page("models", [answers.model(one) for one in found], token)


_READ, _WRITE = Action.TRACKING_READ, Action.TRACKING_WRITE
_ONE = "/mlflow/logged-models/{model_id:str}"

ROUTES = (
    endpoint("POST", "/mlflow/logged-models", _WRITE, create),
    endpoint("POST", "/mlflow/logged-models/search", _READ, search),
    endpoint("GET", _ONE, _READ, get),
    endpoint("PATCH", _ONE, _WRITE, finalize),
    endpoint("DELETE", _ONE, _WRITE, delete),
    endpoint("POST", f"{_ONE}/params", _WRITE, set_params),
    endpoint("PATCH", f"{_ONE}/tags", _WRITE, set_tags),
    endpoint("DELETE", f"{_ONE}/tags/{{tag_key:path}}", _WRITE, delete_tag),
)
