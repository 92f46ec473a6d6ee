"""Every field of the document: the one table that the parser reads by and the schema is made of."""

from __future__ import annotations

import re
from typing import Final

from verderer.core.governance.model import Priority
from verderer.core.pipeline.limits import (
    MAX_INSTANCES,
    MAX_NAME,
    MAX_NODES,
    MAX_RETRIES,
    MAX_VALUE,
)
from verderer.core.pipeline.reading.amounts import Amounts
from verderer.core.pipeline.reading.containers import Either, Field, ListOf, MapOf, Record
from verderer.core.pipeline.reading.kinds import Duration, Integer, Text, Value
from verderer.core.pipeline.spec import (
    DEFAULT_BACKOFF_S,
    DEFAULT_GRACE_S,
    DEFAULT_WHEN,
    MAX_BACKOFF_S,
    OnClusterLost,
    OutputKind,
    ParameterType,
)
from verderer.core.pipeline.syntax import MAX_LENGTH

_LABEL: Final = r"[a-z0-9]([-a-z0-9]*[a-z0-9])?"
_VARIABLE: Final = r"[A-Za-z_][A-Za-z0-9_-]*"
_SEGMENT: Final = r"(?!\.{1,2}(/|$))[^/\x00-\x1f\x7f]{1,255}"


def _as_label(text: str) -> str:
    return re.sub(r"[^a-z0-9]+", "-", text.lower())[:MAX_NAME].strip("-")


def _as_variable(text: str) -> str:
    return re.sub(r"[^A-Za-z0-9_-]+", "_", text).strip("_-").lstrip("0123456789_-")


def _as_relative(text: str) -> str:
    mended = re.sub(r"/{2,}", "/", text.strip().lstrip("/"))
    return mended if mended and re.fullmatch(_PATH_PATTERN, mended) else ""


_PATH_PATTERN: Final = rf"(\./)?{_SEGMENT}(/{_SEGMENT})*/?"

NAME: Final = Text(
    expected="a name of lower-case letters, digits and `-`",
    pattern=_LABEL,
    max_length=MAX_NAME,
    min_length=1,
    mend=_as_label,
)
VARIABLE: Final = Text(
    expected="a name of letters, digits, `_` and `-` that begins with a letter or `_`",
    pattern=_VARIABLE,
    max_length=MAX_NAME,
    min_length=1,
    mend=_as_variable,
)
PATH: Final = Text(
    expected="a relative path without `..`",
    pattern=_PATH_PATTERN,
    max_length=1_024,
    min_length=1,
    hint="paths stay inside the step's working directory",
    mend=_as_relative,
)
SOURCE: Final = Text(
    expected="a step and one of its outputs, written step.output",
    pattern=rf"{_LABEL}\.{_VARIABLE}",
    max_length=2 * MAX_NAME + 1,
    min_length=1,
)
ENV_NAME: Final = Text(
    expected="the name of an environment variable",
    pattern=r"[A-Za-z_][A-Za-z0-9_]*",
    max_length=255,
    min_length=1,
    mend=lambda text: re.sub(r"[^A-Za-z0-9_]+", "_", text).lstrip("0123456789"),
)
IMAGE: Final = Text(
    expected="the name of a container image, without spaces",
    # Spaces are fine inside a reference only.
    pattern=r"([^\s$]|\$(?!\{\{)|\$\{\{[^{}]*\}\})+",
    max_length=1_000,
    min_length=1,
)
DESCRIPTION: Final = Text(expected="a description", max_length=4_000)
CHOICE: Final = Text(expected="a value", max_length=MAX_VALUE)

METADATA: Final = Record(
    "metadata",
    (
        Field("name", NAME, "What the pipeline is called.", required=True),
        Field(
            "project",
            NAME,
            "The project that its runs belong to. Without it, whoever submits it says.",
            also=("namespace",),
        ),
        Field(
            "resourceGroup",
            NAME,
            "One of the resource groups that the project may use; without it its default.",
            also=("queue", "cluster", "resource_group"),
        ),
        Field(
            "priority",
            Text(expected="a priority", choices=tuple(one.word for one in Priority)),
            "How urgent it is among the runs of its resource group; a long wait raises it.",
            default=Priority.NORMAL.word,
        ),
        Field(
            "labels",
            MapOf(
                Text(
                    expected="a label's name",
                    pattern=r"([a-z0-9]([-a-z0-9.]*[a-z0-9])?/)?"
                    r"[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?",
                    max_length=317,
                    min_length=1,
                ),
                Text(
                    expected="a label's value of letters, digits, `-`, `_` and `.`",
                    pattern=r"([A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?)?",
                    max_length=MAX_NAME,
                ),
                expected="a mapping of labels",
                maximum=64,
            ),
            "Labels of the run, such as `team`: rules of resource groups match them.",
            also=("tags", "annotations"),
        ),
        Field("description", DESCRIPTION, "What the pipeline is for, in a sentence."),
    ),
    example="{name: digits, project: demo}",
)

PARAMETER: Final = Record(
    "a parameter",
    (
        Field(
            "default",
            Value(nullable=True),
            "The value when none is given. Without it a value must be given.",
            also=("value",),
        ),
        Field(
            "type",
            Text(expected="a type", choices=tuple(ParameterType)),
            "What a value must look like. Without it, what the default looks like.",
        ),
        Field("description", DESCRIPTION, "What the parameter does.", also=("help",)),
        Field(
            "choices",
            ListOf(CHOICE, "a list of values", minimum=1, maximum=1_000, unique=True),
            "The only values allowed.",
            also=("enum", "options", "values"),
        ),
    ),
)

RESOURCES: Final = Record(
    "resources",
    (
        Field(
            "requests",
            Amounts(),
            "What each node of the step is sure to have. Taken from `limits` where left out.",
            also=("request",),
        ),
        Field(
            "limits",
            Amounts(),
            "What the step may not exceed on a node. A device's limit is its request.",
            also=("limit",),
        ),
    ),
    example="{requests: {cpu: 500m, memory: 512Mi}, limits: {nvidia.com/gpu: 1}}",
)

INPUT: Final = Record(
    "an input",
    (
        Field("from", SOURCE, "The step and the output, as `step.output`.", required=True),
        Field("path", PATH, "Where it is put; `inputs/NAME` if left out."),
    ),
)

OUTPUT: Final = Record(
    "an output",
    (
        Field("path", PATH, "What to keep, a file or a directory.", required=True),
        Field(
            "kind",
            Text(expected="a kind of output", choices=tuple(OutputKind)),
            "Whether it must be a file or a directory; either, if left out.",
            default=OutputKind.AUTO.value,
            also=("type",),
        ),
    ),
)

RETRIES: Final = Record(
    "retries",
    (
        Field(
            "count",
            Integer(0, MAX_RETRIES),
            "How many more attempts may follow a failed one.",
            required=True,
            also=("limit", "max", "attempts"),
        ),
        Field(
            "backoff",
            Duration(minimum=0, maximum=MAX_BACKOFF_S),
            "The wait before the first retry; it doubles with each, up to an hour.",
            default=f"{DEFAULT_BACKOFF_S}s",
            also=("delay", "wait"),
        ),
    ),
)

_ON_CLUSTER_LOST: Final = Text(
    expected="what to do when its cluster is lost", choices=tuple(OnClusterLost)
)
_LOST_ALSO: Final = ("on_cluster_lost", "onlost", "clusterlost", "whenclusterlost")

_WORDS: Final = ListOf(Text(expected="a text"), "a list of texts", maximum=1_000)

STEP: Final = Record(
    "a step",
    (
        Field("name", NAME, "What the step is called; unique in the pipeline.", required=True),
        Field(
            "image",
            IMAGE,
            "The container image. Needed on Kubernetes; clusters of plain processes ignore it.",
            also=("container",),
        ),
        Field(
            "command",
            ListOf(Text(expected="a text"), "a list of texts", minimum=1, maximum=1_000),
            "The program and its first arguments. Give this or `script`.",
            also=("cmd", "entrypoint"),
        ),
        Field("args", _WORDS, "More arguments, after those of `command`.", also=("arguments",)),
        Field(
            "script",
            Text(expected="a shell script", min_length=1),
            "A shell script, run as it stands. Parameters are in its environment.",
            also=("run", "source", "bash", "sh"),
        ),
        Field(
            "needs",
            ListOf(NAME, "a list of steps", maximum=MAX_INSTANCES, unique=True),
            "Steps that must end before this one starts.",
            also=("dependson", "dependencies", "after", "requires", "upstream"),
        ),
        Field(
            "env",
            MapOf(ENV_NAME, Text(expected="a text"), "a mapping of environment variables"),
            "Environment variables.",
            also=("environment", "envs", "variables", "vars"),
        ),
        Field(
            "resources",
            RESOURCES,
            "What each node of the step must have.",
            also=("resource", "requests", "limits"),
        ),
        Field(
            "nodes",
            Integer(1, MAX_NODES),
            "On how many nodes it runs at once, all or none.",
            default=1,
            also=("replicas", "numnodes", "nnodes", "workers", "parallelism"),
        ),
        Field(
            "retries",
            Either(Integer(0, MAX_RETRIES), RETRIES, "a number of retries"),
            "How many more attempts may follow a failed one.",
            default=0,
            also=("retry", "retrystrategy", "backofflimit", "maxretries"),
        ),
        Field(
            "timeout",
            Duration(),
            "How long one attempt may run; without it, for ever.",
            also=("timeouts", "timeoutseconds", "timeoutminutes", "activedeadlineseconds"),
        ),
        Field(
            "grace",
            Duration(minimum=0, maximum=86_400),
            "How long a process may take to stop once asked, before it is killed.",
            default=f"{DEFAULT_GRACE_S}s",
            also=("terminationgraceperiodseconds", "graceperiod"),
        ),
        Field(
            "onClusterLost",
            _ON_CLUSTER_LOST,
            "When its cluster cannot be reached: `wait` for it, the work goes on there; or `rerun` "
            "it elsewhere, once it is sure to have been stopped there.",
            default=OnClusterLost.WAIT.value,
            also=_LOST_ALSO,
        ),
        Field(
            "inputs",
            MapOf(VARIABLE, Either(SOURCE, INPUT, "step.output"), "a mapping of inputs"),
            "Outputs of earlier steps that it reads; each implies the need.",
            also=("input",),
        ),
        Field(
            "outputs",
            MapOf(VARIABLE, Either(PATH, OUTPUT, "a path"), "a mapping of outputs"),
            "Files and directories that are kept when it succeeds.",
            also=("output", "artifacts"),
        ),
        Field(
            "when",
            Text(expected="a condition", min_length=1, max_length=MAX_LENGTH),
            "The condition on which it runs, once the steps that it needs have ended.",
            default=DEFAULT_WHEN,
            also=("if", "condition"),
        ),
        Field(
            "matrix",
            MapOf(
                VARIABLE,
                ListOf(CHOICE, "a list of values", minimum=1, maximum=MAX_INSTANCES, unique=True),
                "a mapping of names to lists of values",
                minimum=1,
                maximum=32,
            ),
            "Values to run the step with, one instance for each combination.",
            also=("strategy", "foreach", "withitems", "withparam"),
        ),
    ),
    example="{name: train, command: [python, train.py]}",
)

PIPELINE: Final = Record(
    "a pipeline",
    (
        Field("metadata", METADATA, "What the pipeline is.", required=True, also=("meta",)),
        Field(
            "parameters",
            MapOf(
                VARIABLE,
                Either(Value(nullable=True), PARAMETER, "a default value or a mapping"),
                "a mapping of parameters",
            ),
            "Values that whoever submits the pipeline may choose.",
            also=("params", "arguments", "inputs"),
        ),
        Field(
            "onClusterLost",
            _ON_CLUSTER_LOST,
            "What steps do that do not say `onClusterLost` themselves.",
            default=OnClusterLost.WAIT.value,
            also=_LOST_ALSO,
        ),
        Field(
            "steps",
            ListOf(STEP, "a list of steps", minimum=1, maximum=MAX_INSTANCES),
            "What to run. Order does not matter; `needs` does.",
            required=True,
            also=("tasks", "jobs", "stages", "nodes"),
        ),
    ),
    example="metadata: {name: digits} and steps: [...]",
)
