"""Requests, field by field as MLflow's protocol has them.

Every field may be missing or null: what is required says the use case, in MLflow's words.
"""

from __future__ import annotations

from typing import Annotated

import msgspec

Int64 = Annotated[int, msgspec.Meta(ge=-(1 << 63), le=(1 << 63) - 1)]
Moment = Annotated[int, msgspec.Meta(ge=0, le=(1 << 63) - 1)]
"""Milliseconds since 1970."""


class Document(msgspec.Struct):
    """Base of all; unknown fields are ignored, since clients grow."""


class Pair(Document):
    """A tag or a parameter."""

    key: str | None = None
    value: str | None = None


class CreateExperiment(Document):
    name: str | None = None
    artifact_location: str | None = None
    tags: list[Pair] | None = None


class ExperimentRef(Document):
    experiment_id: str | None = None


class UpdateExperiment(ExperimentRef):
    new_name: str | None = None


class ExperimentTag(ExperimentRef):
    key: str | None = None
    value: str | None = None


class SearchExperiments(Document):
    max_results: Int64 | None = None
    page_token: str | None = None
    filter: str | None = None
    order_by: list[str] | None = None
    view_type: int | str | None = None


class CreateRun(Document):
    experiment_id: str | None = None
    user_id: str | None = None
    run_name: str | None = None
    start_time: Moment | None = None
    tags: list[Pair] | None = None


class RunRef(Document):
    run_id: str | None = None
    run_uuid: str | None = None

    @property
    def uid(self) -> str | None:
        """The older name counts where the newer is missing."""
        return self.run_id or self.run_uuid


class UpdateRun(RunRef):
    status: int | str | None = None
    end_time: Moment | None = None
    run_name: str | None = None


class KeyValue(RunRef):
    """log-parameter, set-tag, delete-tag."""

    key: str | None = None
    value: str | None = None


class Metric(Document, kw_only=True):
    key: str | None = None
    value: float
    timestamp: Moment
    step: Int64 | None = None
    model_id: str | None = None
    dataset_name: str | None = None
    dataset_digest: str | None = None


class LogMetric(RunRef, kw_only=True):
    key: str | None = None
    value: float
    timestamp: Moment
    step: Int64 | None = None
    model_id: str | None = None
    dataset_name: str | None = None
    dataset_digest: str | None = None


class LogBatch(RunRef):
    metrics: list[Metric] | None = None
    params: list[Pair] | None = None
    tags: list[Pair] | None = None


class LogModel(RunRef):
    model_json: str | None = None


class DatasetOfRun(Document):
    name: str | None = None
    digest: str | None = None
    source_type: str | None = None
    source: str | None = None
    schema: str | None = None
    profile: str | None = None


class DatasetInput(Document):
    tags: list[Pair] | None = None
    dataset: DatasetOfRun | None = None


class ModelLink(Document):
    model_id: str | None = None
    step: Int64 | None = None


class LogInputs(RunRef):
    datasets: list[DatasetInput] | None = None
    models: list[ModelLink] | None = None


class LogOutputs(RunRef):
    models: list[ModelLink] | None = None


class SearchRuns(Document):
    experiment_ids: list[str] | None = None
    filter: str | None = None
    run_view_type: int | str | None = None
    max_results: Int64 | None = None
    order_by: list[str] | None = None
    page_token: str | None = None


class SearchDatasets(Document):
    experiment_ids: list[str] | None = None


class CreateModel(Document):
    experiment_id: str | None = None
    name: str | None = None
    model_type: str | None = None
    source_run_id: str | None = None
    params: list[Pair] | None = None
    tags: list[Pair] | None = None


class FinalizeModel(Document):
    status: int | str | None = None


class ModelPairs(Document):
    """Parameters or tags of a logged model."""

    params: list[Pair] | None = None
    tags: list[Pair] | None = None


class DatasetFilter(Document):
    dataset_name: str | None = None
    dataset_digest: str | None = None


class ModelOrder(Document):
    field_name: str | None = None
    ascending: bool | None = None
    dataset_name: str | None = None
    dataset_digest: str | None = None


class SearchModels(Document):
    experiment_ids: list[str] | None = None
    filter: str | None = None
    datasets: list[DatasetFilter] | None = None
    max_results: Int64 | None = None
    order_by: list[ModelOrder] | None = None
    page_token: str | None = None


def pairs(given: list[Pair] | None) -> list[tuple[str | None, str | None]]:
    """Tags or parameters as use cases take them."""
    return [(pair.key, pair.value) for pair in given or ()]
