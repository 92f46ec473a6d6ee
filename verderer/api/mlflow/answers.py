"""Answers, field by field as MLflow's protocol has them."""

from __future__ import annotations

import math
from typing import Any

from verderer.core.tracking.artifact_path import experiment_root, model_root, run_root
from verderer.core.tracking.entities import (
    Dataset,
    Experiment,
    LoggedModel,
    ModelStatus,
    Pairs,
    TrackedData,
    TrackedRun,
)
from verderer.core.tracking.samples import Point, Sample

Json = dict[str, Any]

_MODEL_STATUS = {
    ModelStatus.PENDING: "LOGGED_MODEL_PENDING",
    ModelStatus.READY: "LOGGED_MODEL_READY",
    ModelStatus.FAILED: "LOGGED_MODEL_UPLOAD_FAILED",
}


def number(value: float) -> float | str:
    """A float as protocol buffers write it in JSON, which has no NaN and no infinities."""
    if math.isfinite(value):
        return value
    if math.isnan(value):
        return "NaN"
    return "Infinity" if value > 0 else "-Infinity"


def stage(*, deleted: bool) -> str:
    """Whether something is there, in MLflow's words."""
    return "deleted" if deleted else "active"


def experiment(found: Experiment) -> Json:
    """An `Experiment`."""
    return {
        "experiment_id": str(found.id),
        "name": found.name,
        "artifact_location": experiment_root(found.id),
        "lifecycle_stage": stage(deleted=found.deleted),
        "last_update_time": found.updated_ms,
        "creation_time": found.created_ms,
        "tags": _pairs(found.tags),
    }


def run(found: TrackedRun, data: TrackedData) -> Json:
    """A `Run`."""
    return {
        "info": run_info(found),
        "data": {
            "metrics": [metric(sample) for sample in data.metrics],
            "params": _pairs(data.params),
            "tags": _pairs(data.tags),
        },
        "inputs": {
            "dataset_inputs": [_dataset_input(dataset) for dataset in data.datasets],
            "model_inputs": [{"model_id": f"m-{uid}"} for uid in data.models_read],
        },
        "outputs": {
            "model_outputs": [
                {"model_id": f"m-{uid}", "step": step} for uid, step in data.models_made
            ]
        },
    }


def run_info(found: TrackedRun) -> Json:
    """A `RunInfo`."""
    info: Json = {
        "run_id": found.uid,
        "run_uuid": found.uid,
        "run_name": found.name,
        "experiment_id": str(found.experiment),
        "user_id": found.user,
        "status": found.status.value,
        "start_time": found.start_ms,
        "artifact_uri": run_root(found.experiment, found.uid),
        "lifecycle_stage": stage(deleted=found.deleted),
    }
    if found.end_ms is not None:
        info["end_time"] = found.end_ms
    return info


def metric(sample: Sample) -> Json:
    """A `Metric`."""
    return {
        "key": sample.key,
        "value": number(sample.value),
        "timestamp": sample.at_ms,
        "step": sample.step,
    }


def point(key: str, found: Point, uid: str | None = None) -> Json:
    """A `Metric`, or a `MetricWithRunId`."""
    answer: Json = {
        "key": key,
        "value": number(found.value),
        "timestamp": found.at_ms,
        "step": found.step,
    }
    if uid is not None:
        answer["run_id"] = uid
    return answer


def model(found: LoggedModel) -> Json:
    """A `LoggedModel`."""
    info: Json = {
        "model_id": f"m-{found.uid}",
        "experiment_id": str(found.experiment),
        "name": found.name,
        "creation_timestamp_ms": found.created_ms,
        "last_updated_timestamp_ms": found.updated_ms,
        "artifact_uri": model_root(found.experiment, found.uid),
        "status": _MODEL_STATUS[found.status],
        "model_type": found.model_type,
        "tags": _pairs(found.tags),
    }
    if found.source_run:
        info["source_run_id"] = found.source_run
    metrics = []
    for one in found.metrics:
        answer = {**metric(one.sample), "model_id": f"m-{found.uid}", "run_id": one.run}
        if one.dataset:
            answer["dataset_name"] = one.dataset
        if one.digest:
            answer["dataset_digest"] = one.digest
        metrics.append(answer)
    return {"info": info, "data": {"params": _pairs(found.params), "metrics": metrics}}


def page(name: str, found: list[Json], token: str) -> Json:
    """A page of things called `name`; the token is left out at the end."""
    return {name: found, "next_page_token": token} if token else {name: found}


def _dataset_input(found: Dataset) -> Json:
    dataset: Json = {
        "name": found.name,
        "digest": found.digest,
        "source_type": found.source_type,
        "source": found.source,
    }
    if found.schema is not None:
        dataset["schema"] = found.schema
    if found.profile is not None:
        dataset["profile"] = found.profile
    return {"tags": _pairs(found.tags), "dataset": dataset}


def _pairs(found: Pairs) -> list[Json]:
    return [{"key": key, "value": value} for key, value in found]
