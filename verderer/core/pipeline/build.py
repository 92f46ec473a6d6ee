"""Makes the values of `spec` from what was read by the tables of `fields`.

Works on incomplete readings too, so that the checks which follow can find more: what could not be
read is empty, and a step or a need that could not be read keeps its place with an empty name.
"""

from __future__ import annotations

from typing import Any

from verderer.core.governance.model import Priority
from verderer.core.model.resources import Resources, may_overcommit
from verderer.core.pipeline.reading.containers import Raw
from verderer.core.pipeline.reading.document import Scalar
from verderer.core.pipeline.reading.kinds import is_bool, is_float, is_int
from verderer.core.pipeline.spec import (
    DEFAULT_BACKOFF_S,
    DEFAULT_GRACE_S,
    DEFAULT_WHEN,
    InputSpec,
    OnClusterLost,
    OutputKind,
    OutputSpec,
    Parameter,
    ParameterType,
    Pipeline,
    StepSpec,
)


def build_pipeline(raw: Raw) -> Pipeline:
    """The pipeline of a reading of `fields.PIPELINE`."""
    metadata: Raw = raw.get("metadata", {})
    return Pipeline(
        name=metadata.get("name", ""),
        project=metadata.get("project", ""),
        resource_group=metadata.get("resourceGroup", ""),
        priority=_priority(metadata.get("priority", "")),
        labels=tuple(metadata.get("labels", {}).items()),
        description=metadata.get("description", ""),
        parameters=tuple(
            _parameter(name, value) for name, value in raw.get("parameters", {}).items()
        ),
        steps=tuple(_step(step or {}, lost=raw) for step in raw.get("steps", ())),
    )


def _priority(word: str) -> Priority:
    known = {one.word: one for one in Priority}
    return known.get(word, Priority.NORMAL)


def _parameter(name: str, value: Scalar | Raw) -> Parameter:
    if isinstance(value, Scalar):
        return Parameter(name=name, default=_default(value), type=_type_of(value))
    default: Scalar | None = value.get("default")
    given = value.get("type", "")
    return Parameter(
        name=name,
        default=None if default is None else _default(default),
        type=ParameterType(given) if given in tuple(ParameterType) else _type_of(default),
        description=value.get("description", ""),
        choices=_texts(value, "choices"),
    )


def _default(value: Scalar) -> str | None:
    return None if value.is_null else value.text


def _type_of(value: Scalar | None) -> ParameterType:
    """What a plain default looks like to YAML 1.2; quotes make a string of anything."""
    if value is None or not value.plain:
        return ParameterType.STRING
    if is_int(value.text):
        return ParameterType.INT
    if is_float(value.text):
        return ParameterType.FLOAT
    return ParameterType.BOOL if is_bool(value.text) else ParameterType.STRING


def _step(raw: Raw, *, lost: Raw) -> StepSpec:
    """One step; `lost` is what says `onClusterLost` when the step does not."""
    inputs = tuple(_input(name, value) for name, value in raw.get("inputs", {}).items())
    requests, limits = _resources(raw.get("resources", {}))
    retries, backoff_s = _retries(raw.get("retries", 0))
    return StepSpec(
        name=raw.get("name", ""),
        image=raw.get("image", ""),
        command=_texts(raw, "command"),
        args=_texts(raw, "args"),
        script=raw.get("script", ""),
        needs=_needs(_texts(raw, "needs"), inputs),
        env=tuple(raw.get("env", {}).items()),
        requests=requests,
        limits=limits,
        nodes=raw.get("nodes", 1),
        retries=retries,
        backoff_s=backoff_s,
        timeout_s=raw.get("timeout"),
        grace_s=raw.get("grace", DEFAULT_GRACE_S),
        on_cluster_lost=_on_cluster_lost(raw, lost),
        inputs=inputs,
        outputs=tuple(_output(name, value) for name, value in raw.get("outputs", {}).items()),
        when=raw.get("when", DEFAULT_WHEN),
        matrix=tuple(
            (name, tuple(text or "" for text in values))
            for name, values in raw.get("matrix", {}).items()
        ),
    )


def _on_cluster_lost(step: Raw, pipeline: Raw) -> OnClusterLost:
    given = step.get("onClusterLost", pipeline.get("onClusterLost"))
    return OnClusterLost(given) if given in tuple(OnClusterLost) else OnClusterLost.WAIT


def _texts(raw: Raw, name: str) -> tuple[str, ...]:
    return tuple(text or "" for text in raw.get(name, ()))


def _needs(written: tuple[str, ...], inputs: tuple[InputSpec, ...]) -> tuple[str, ...]:
    """The needs as written, and after them what inputs imply, so that indexes stay true."""
    implied = dict.fromkeys(i.from_step for i in inputs if i.from_step)
    return (*written, *(name for name in implied if name not in written))


def _resources(raw: Raw) -> tuple[Resources, Resources]:
    """Requests and limits, each completed from the other as Kubernetes does."""
    requests, limits = dict(raw.get("requests", {})), dict(raw.get("limits", {}))
    for name, amount in limits.items():
        requests.setdefault(name, amount)
    for name, amount in requests.items():
        if not may_overcommit(name):
            limits.setdefault(name, amount)
    return Resources.of(requests), Resources.of(limits)


def _retries(raw: int | Raw) -> tuple[int, int]:
    if isinstance(raw, int):
        return raw, DEFAULT_BACKOFF_S
    return raw.get("count", 0), raw.get("backoff", DEFAULT_BACKOFF_S)


def _input(name: str, value: str | Raw) -> InputSpec:
    raw: Raw = {"from": value} if isinstance(value, str) else value
    step, _, output = raw.get("from", "").partition(".")
    return InputSpec(
        name=name,
        from_step=step,
        from_output=output,
        path=_path(raw.get("path", f"inputs/{name}")),
    )


def _output(name: str, value: str | Raw) -> OutputSpec:
    raw: dict[str, Any] = {"path": value} if isinstance(value, str) else value
    path: str = raw.get("path", "")
    kind = raw.get("kind", "")
    if kind not in tuple(OutputKind):
        kind = OutputKind.DIRECTORY if path.endswith("/") else OutputKind.AUTO
    return OutputSpec(name=name, path=_path(path), kind=OutputKind(kind))


def _path(path: str) -> str:
    return path.removeprefix("./").rstrip("/")
