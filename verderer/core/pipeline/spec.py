"""A pipeline as its author wrote it, checked: frozen values that a run is made from.

Everything here is hashable and has no position in a file any more; `parse` makes it, and what it
made needs no further checks.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from verderer.core.governance.model import Priority
from verderer.core.model.resources import NOTHING, Resources

DEFAULT_WHEN: Final = "succeeded()"
DEFAULT_BACKOFF_S: Final = 5
DEFAULT_GRACE_S: Final = 30
MAX_BACKOFF_S: Final = 3600


class ParameterType(StrEnum):
    """What the text of a parameter's value must look like."""

    STRING = "string"
    INT = "int"
    FLOAT = "float"
    BOOL = "bool"


class OutputKind(StrEnum):
    """What a step leaves at an output's path."""

    FILE = "file"
    DIRECTORY = "directory"
    AUTO = "auto"  # whichever of the two is there when the step ends


class OnClusterLost(StrEnum):
    """What becomes of a step whose cluster cannot be reached."""

    WAIT = "wait"  # its work goes on there; nothing starts elsewhere until somebody knows
    RERUN = "rerun"  # it is stopped there, and starts elsewhere once it is sure to have stopped


@dataclass(frozen=True, slots=True, kw_only=True)
class Parameter:
    """A value that whoever submits the pipeline may choose."""

    name: str
    default: str | None = None
    """None: a value must be given."""
    type: ParameterType = ParameterType.STRING
    description: str = ""
    choices: tuple[str, ...] = ()
    """Empty: any value of the type."""


@dataclass(frozen=True, slots=True, kw_only=True)
class InputSpec:
    """An artifact of an earlier step, put into the working directory before this one starts."""

    name: str
    from_step: str
    from_output: str
    path: str
    """Relative to the working directory. When `from_step` has a matrix this is a folder with one
    entry for each of its instances, called by the instance's name."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OutputSpec:
    """What is kept of the working directory once the step has succeeded."""

    name: str
    path: str
    """Relative to the working directory, without a trailing slash."""
    kind: OutputKind = OutputKind.AUTO


@dataclass(frozen=True, slots=True, kw_only=True)
class StepSpec:
    """One step. With a matrix it stands for as many instances as the matrix has combinations."""

    name: str
    image: str = ""
    """Empty: none was named; only a cluster that runs plain processes can take the step."""
    command: tuple[str, ...] = ()
    """Empty exactly when `script` is not."""
    args: tuple[str, ...] = ()
    script: str = ""
    """Run by the shell as it stands: nothing in it is ever replaced."""
    needs: tuple[str, ...] = ()
    """Steps that must end first, those implied by `inputs` included; no repeats."""
    env: tuple[tuple[str, str], ...] = ()
    requests: Resources = NOTHING
    """On each node. Whatever has a limit has a request."""
    limits: Resources = NOTHING
    nodes: int = 1
    retries: int = 0
    """How many more attempts a failed one may be followed by."""
    backoff_s: int = DEFAULT_BACKOFF_S
    """Seconds before the first retry; see `wait_before`."""
    timeout_s: int | None = None
    """Seconds that one attempt may run; None: no limit."""
    grace_s: int = DEFAULT_GRACE_S
    """Seconds between asking a process to stop and killing it."""
    inputs: tuple[InputSpec, ...] = ()
    outputs: tuple[OutputSpec, ...] = ()
    when: str = DEFAULT_WHEN
    on_cluster_lost: OnClusterLost = OnClusterLost.WAIT
    matrix: tuple[tuple[str, tuple[str, ...]], ...] = ()
    """Axes in the order written, each with its values; empty: the step is one instance."""

    @property
    def size(self) -> int:
        """How many instances the step expands to."""
        size = 1
        for _, values in self.matrix:
            size *= len(values)
        return size

    def wait_before(self, attempt: int) -> int:
        """Seconds to wait before attempt number `attempt` (1-based; the first waits for nothing).

        The wait doubles with every retry, up to an hour.
        """
        if attempt <= 1:
            return 0
        return min(self.backoff_s << min(attempt - 2, 20), MAX_BACKOFF_S)


@dataclass(frozen=True, slots=True, kw_only=True)
class Pipeline:
    """A whole document. Its steps form no cycle and name only each other."""

    name: str
    project: str = ""
    """Empty: the document leaves it to whoever submits it."""
    resource_group: str = ""
    """Empty: the rules of its project choose."""
    priority: Priority = Priority.NORMAL
    labels: tuple[tuple[str, str], ...] = ()
    description: str = ""
    parameters: tuple[Parameter, ...] = ()
    steps: tuple[StepSpec, ...] = ()
