"""What must hold inside one step: what it runs, its resources, environment and paths."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import pairwise
from typing import Final

from verderer.core.model.resources import format_quantity, may_overcommit
from verderer.core.pipeline.reading.document import child_path
from verderer.core.pipeline.reading.problems import Problems, did_you_mean
from verderer.core.pipeline.reference_checks import Context, check_references, check_when
from verderer.core.pipeline.references import as_variable
from verderer.core.pipeline.spec import InputSpec, StepSpec

_DEVICE_VARIABLES: Final = frozenset(
    {
        "NVIDIA_VISIBLE_DEVICES",
        "CUDA_VISIBLE_DEVICES",
        "ROCR_VISIBLE_DEVICES",
        "HIP_VISIBLE_DEVICES",
        "ASCEND_VISIBLE_DEVICES",
        "ASCEND_RT_VISIBLE_DEVICES",
        "TPU_VISIBLE_CHIPS",
        "TPU_VISIBLE_DEVICES",
    }
)
_OURS: Final = ("VERDERER_", "MLFLOW_TRACKING_")


def check_step(path: str, step: StepSpec, context: Context) -> None:
    """Note everything wrong inside `step`, which stands at `path`."""
    problems = context.problems
    _check_program(path, step, problems)
    _check_resources(path, step, problems)
    _check_env(path, step, problems)
    for field, names in (
        ("matrix", [name for name, _ in step.matrix]),
        ("inputs", [spec.name for spec in step.inputs]),
        ("outputs", [spec.name for spec in step.outputs]),
    ):
        check_distinct_variables(names, f"{path}.{field}", problems)
    for spec in step.inputs:
        _check_input(f"{path}.inputs.{spec.name}", step, spec, context)
    _check_input_paths(path, step, problems)
    check_references(path, step, context)
    check_when(path, step, context)


def check_distinct_variables(names: Iterable[str], path: str, problems: Problems) -> None:
    """Note names that would share one environment variable, such as `lr` and `LR`."""
    seen: dict[str, str] = {}
    for name in names:
        first = seen.setdefault(as_variable(name), name)
        if first != name:
            problems.add(
                f"`{name}` and `{first}` would share one environment variable",
                field=child_path(path, name),
                hint="rename one of them",
            )


def _check_program(path: str, step: StepSpec, problems: Problems) -> None:
    has_command, has_script = (problems.knows(f"{path}.{f}") for f in ("command", "script"))
    if has_command and has_script:
        problems.add(
            "a step has `command` or `script`, and this one has both",
            field=f"{path}.script",
            hint="keep one of them",
        )
    elif not has_command and not has_script:
        problems.add(
            "a step needs `command` or `script`",
            field=path,
            hint="such as command: [python, train.py]",
        )
    if step.command and not step.command[0].strip() and problems.knows(f"{path}.command[0]"):
        problems.add("the program to run has an empty name", field=f"{path}.command[0]")


def _check_resources(path: str, step: StepSpec, problems: Problems) -> None:
    for name, limit in step.limits.items():
        request = step.requests.get(name)
        if request == limit or (request < limit and may_overcommit(name)):
            continue
        asked, allowed = (format_quantity(v, resource=name) for v in (request, limit))
        if may_overcommit(name):
            message = f"the request of {asked} {name} is more than the limit of {allowed}"
            hint = "raise the limit or lower the request"
        else:
            message = f"the request of {asked} {name} is not the limit of {allowed}"
            hint = "nobody shares it, so give one of the two, or the same twice"
        field = child_path(f"{path}.resources.requests", name)
        problems.add(message, field=field, hint=hint)


def _check_env(path: str, step: StepSpec, problems: Problems) -> None:
    for name, _ in step.env:
        if name in _DEVICE_VARIABLES:
            message = f"`{name}` is set by the cluster, so that steps do not see others' devices"
            hint = "ask for devices in `resources`, such as limits: {nvidia.com/gpu: 1}"
        elif name.startswith(_OURS):
            message = f"`{name}` is set by Verderer"
            hint = "choose another name; where to log and with which token is set for every step"
        else:
            continue
        problems.add(message, field=child_path(f"{path}.env", name), hint=hint)


def _check_input(path: str, step: StepSpec, spec: InputSpec, context: Context) -> None:
    if not spec.from_step or not spec.from_output:
        return
    field, problems = f"{path}.from", context.problems
    source = context.by_name.get(spec.from_step)
    if spec.from_step == step.name:
        problems.add(f"the step `{step.name}` cannot read its own output", field=field)
    elif source is None:
        others = (name for name in context.by_name if name != step.name)
        near = problems.nearest(spec.from_step, others)
        hint = did_you_mean(near and f"{near}.{spec.from_output}")
        problems.add(f"there is no step `{spec.from_step}`", field=field, hint=hint)
    elif not problems.knows(f"steps[{source}].outputs.{spec.from_output}"):
        outputs = [output.name for output in context.pipeline.steps[source].outputs]
        near = problems.nearest(spec.from_output, outputs)
        problems.add(
            f"the step `{spec.from_step}` has no output `{spec.from_output}`",
            field=field,
            hint=did_you_mean(near and f"{spec.from_step}.{near}")
            or f"declare it in the outputs of `{spec.from_step}`",
        )


def _check_input_paths(path: str, step: StepSpec, problems: Problems) -> None:
    """No input may be put over another: in sorted order only neighbours can be."""
    by_parts = sorted((tuple(spec.path.split("/")), spec.name) for spec in step.inputs)
    for (upper, first), (lower, second) in pairwise(by_parts):
        if lower[: len(upper)] == upper:
            problems.add(
                f"the inputs `{first}` and `{second}` would be put over each other",
                field=f"{path}.inputs.{second}.path",
                hint="give each a path of its own",
            )
