"""What one attempt of a step starts: its words, its script and its environment, all filled in."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from verderer.core.pipeline.expand import Instance
from verderer.core.pipeline.references import substitute, variable_for
from verderer.core.pipeline.spec import StepSpec


@dataclass(frozen=True, slots=True)
class Launch:
    """A program with its environment. Exactly one of `command` and `script` is not empty."""

    command: tuple[str, ...]
    args: tuple[str, ...]
    script: str
    """As written: a shell reads parameters from the environment."""
    env: dict[str, str]
    """The step's own variables, and `VERDERER_…` for everything that can be referred to."""
    image: str


def render(
    step: StepSpec,
    instance: Instance,
    *,
    parameters: Mapping[str, str],
    run_id: str,
    run_name: str,
    input_paths: Mapping[str, str],
    output_paths: Mapping[str, str],
) -> Launch:
    """Fill in the references of a step for one of its instances.

    `input_paths` and `output_paths` have, by name, where inputs lie and outputs are expected as
    the program sees them. In the environment a parameter `learning-rate` is
    `VERDERER_PARAM_LEARNING_RATE`; likewise `VERDERER_MATRIX_…`, `VERDERER_INPUT_…`,
    `VERDERER_OUTPUT_…`, `VERDERER_RUN_ID`, `VERDERER_RUN_NAME` and `VERDERER_STEP_NAME`.

    Raises:
        KeyError: the step refers to what was not given; never for what `parse` accepted, given
            every parameter and every declared input and output.
    """
    values = {
        **{f"params.{name}": value for name, value in parameters.items()},
        **{f"matrix.{name}": value for name, value in instance.matrix},
        **{f"inputs.{name}.path": path for name, path in input_paths.items()},
        **{f"outputs.{name}.path": path for name, path in output_paths.items()},
        "run.id": run_id,
        "run.name": run_name,
        "step.name": instance.name,
    }
    env = {name: substitute(value, values) for name, value in step.env}
    for name, value in values.items():
        env[variable_for(name)] = value
    return Launch(
        command=tuple(substitute(word, values) for word in step.command),
        args=tuple(substitute(word, values) for word in step.args),
        script=step.script,
        env=env,
        image=substitute(step.image, values),
    )
