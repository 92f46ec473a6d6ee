"""What was tracked, as frozen values: experiments, runs, data sets, logged models."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from verderer.core.errors import Invalid
from verderer.core.tracking.samples import Sample

Pairs = tuple[tuple[str, str], ...]
"""Keys and values, sorted by key."""


class Status(StrEnum):
    """Where a tracked run stands; its own code says so, and it may say anything at any time."""

    RUNNING = "RUNNING"
    SCHEDULED = "SCHEDULED"
    FINISHED = "FINISHED"
    FAILED = "FAILED"
    KILLED = "KILLED"


STATUS_NUMBERS: Mapping[int, Status] = {
    1: Status.RUNNING,
    2: Status.SCHEDULED,
    3: Status.FINISHED,
    4: Status.FAILED,
    5: Status.KILLED,
}
"""How clients may name a status instead."""


class ModelStatus(StrEnum):
    """Whether a logged model's files are all there."""

    PENDING = "PENDING"
    READY = "READY"
    FAILED = "FAILED"


class Stage(StrEnum):
    """Which of the living and the deleted are wanted."""

    ACTIVE = "ACTIVE_ONLY"
    DELETED = "DELETED_ONLY"
    ALL = "ALL"


STAGE_NUMBERS: Mapping[int, Stage] = {1: Stage.ACTIVE, 2: Stage.DELETED, 3: Stage.ALL}


def parse_status(value: str | int) -> Status:
    """Read a run's status, given by name or number.

    Raises:
        Invalid: there is no such status.
    """
    found = STATUS_NUMBERS.get(_number(value))
    if found is None and value in Status.__members__:
        found = Status[str(value)]
    if found is None:
        raise Invalid(f"Invalid value {value!a} for parameter 'status' supplied.")
    return found


def parse_stage(value: str | int | None) -> Stage:
    """Read which are wanted; the living ones when nothing is said.

    Raises:
        Invalid: there is no such view.
    """
    if value is None:
        return Stage.ACTIVE
    found = STAGE_NUMBERS.get(_number(value))
    if found is None and value in {stage.value for stage in Stage}:
        found = Stage(str(value))
    if found is None:
        raise Invalid(f"Invalid view type {value!a}.")
    return found


def _number(value: str | int) -> int:
    if isinstance(value, int):
        return value
    return int(value) if len(value) == 1 and value in "0123456789" else -1


@dataclass(frozen=True, slots=True, kw_only=True)
class Experiment:
    """A folder of runs; belongs to exactly one project."""

    id: int
    project: int
    project_name: str
    name: str
    """Unique in the project, the deleted ones included."""
    created_ms: int
    updated_ms: int
    deleted: bool
    tags: Pairs = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class TrackedRun:
    """A run in the sense of MLflow."""

    id: int
    """The store's own; never shown."""
    uid: str
    """32 hexadecimal digits."""
    experiment: int
    project: int
    name: str
    user: str
    status: Status
    start_ms: int
    end_ms: int | None
    deleted: bool
    run: int | None
    """The pipeline's run whose step made it, if one did."""
    step: int | None
    attempt: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Dataset:
    """What a run read."""

    name: str
    digest: str
    source_type: str
    source: str
    schema: str | None = None
    profile: str | None = None
    tags: Pairs = ()
    """In the order in which they came."""

    @property
    def context(self) -> str | None:
        """What it was used for: `training`, `eval`, …"""
        return next((value for key, value in self.tags if key == "mlflow.data.context"), None)


@dataclass(frozen=True, slots=True, kw_only=True)
class TrackedData:
    """Everything that a run has reported but the histories of its metrics."""

    metrics: tuple[Sample, ...] = ()
    """The latest sample of each."""
    params: Pairs = ()
    tags: Pairs = ()
    datasets: tuple[Dataset, ...] = ()
    models_read: tuple[str, ...] = ()
    """Hexadecimal digits of logged models."""
    models_made: tuple[tuple[str, int], ...] = ()
    """The same, each with the step at which it was made."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelSample:
    """One value of one metric of a logged model."""

    sample: Sample
    run: str
    """32 hexadecimal digits of the run that measured it."""
    dataset: str | None = None
    digest: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class LoggedModel:
    """A model that a run made, or that somebody announced."""

    id: int
    uid: str
    experiment: int
    project: int
    source_run: str | None
    name: str
    model_type: str
    status: ModelStatus
    created_ms: int
    updated_ms: int
    deleted: bool
    params: Pairs = ()
    tags: Pairs = ()
    metrics: tuple[ModelSample, ...] = ()
