"""The documents about runs that the users' API and the command line exchange.

Ids are 13 characters (`core.model.ids`), times UTC, amounts of resources Kubernetes quantities such
as `500m`, `4` or `16Gi`, the way pipelines write them. States of steps and runs are plain words, so
that a client reads what a newer server says.
"""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any

import msgspec
from msgspec import Meta

from verderer.wire.problems import ProblemDocument

MAX_BATCH = 1_000

RunId = Annotated[str, Meta(examples=["06x3k9v2m4t7q"], description="13 characters.")]
Value = str | int | float | bool
"""Of a parameter; numbers and truth values are taken as JSON writes them."""
Key = Annotated[
    str,
    Meta(
        description="The same key in the same project gives the run that was made the first time."
    ),
]
Text = Annotated[
    str,
    Meta(
        description="The pipeline's YAML.",
        examples=["metadata: {name: hello}\nsteps:\n  - name: greet\n    command: [echo, hello]\n"],
    ),
]


class NewRun(msgspec.Struct, forbid_unknown_fields=True, omit_defaults=True, kw_only=True):
    """A pipeline to run. Without `project` the document names it, or the caller has just one."""

    pipeline: Text
    parameters: dict[str, Value] = {}
    project: str | None = None
    resource_group: str = ""
    """One of those that the project may use; empty: its default."""


class BatchRun(msgspec.Struct, forbid_unknown_fields=True, omit_defaults=True, kw_only=True):
    """One of many. What it leaves out is taken from the batch."""

    pipeline: str = ""
    parameters: dict[str, Value] = {}
    project: str | None = None
    resource_group: str = ""
    idempotency_key: Key | None = None


class NewBatch(msgspec.Struct, forbid_unknown_fields=True, omit_defaults=True, kw_only=True):
    """Up to 1,000 runs, each of which stands or falls by itself."""

    runs: Annotated[list[BatchRun], Meta(min_length=1, max_length=MAX_BATCH)]
    pipeline: str = ""
    project: str | None = None
    resource_group: str = ""


class SubmittedRun(msgspec.Struct, frozen=True, kw_only=True):
    """A run that is committed."""

    id: RunId
    name: str
    project: str
    steps: int
    created: bool
    """False: the idempotency key was known, and this is the run of then."""
    url: str
    """Of its page, for people."""


class BatchItem(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What became of one run: 201, 200 for a known key, or the status and problem it met."""

    status: int
    run: SubmittedRun | None = None
    problem: ProblemDocument | None = None


class BatchResult(msgspec.Struct, frozen=True):
    """One item for each run that was sent, in their order."""

    items: list[BatchItem]


class RunOut(msgspec.Struct, frozen=True, kw_only=True):
    """One line of a list of runs."""

    id: RunId
    name: Annotated[str, Meta(examples=["train-digits"])]
    project: Annotated[str, Meta(examples=["demo"])]
    resource_group: Annotated[str, Meta(examples=["everything"])] = ""
    state: Annotated[
        str,
        Meta(
            description="queued, running, cancelling, succeeded, failed or cancelled",
            examples=["running"],
        ),
    ]
    labels: dict[str, str]
    steps: int
    open: Annotated[int, Meta(description="Steps that are not over.")]
    failed: int
    actor: Annotated[str, Meta(examples=["user:ana@example.org"])]
    cloned_from: RunId | None
    created_at: datetime
    started_at: datetime | None
    ended_at: datetime | None


class RunDetail(RunOut, frozen=True, kw_only=True):
    """A run with what it was made from and how its steps stand."""

    counts: Annotated[
        dict[str, int],
        Meta(
            description="Steps by what is shown of them; states that none is in are left out.",
            examples=[{"succeeded": 3, "running": 1, "waiting": 2}],
        ),
    ]
    parameters: dict[str, str]
    idempotency_key: str | None
    pipeline: Text


class RunStateOut(msgspec.Struct, frozen=True):
    """The state that a run is in now."""

    id: RunId
    state: str


class RetryIn(msgspec.Struct, forbid_unknown_fields=True):
    """With `all` what succeeded runs again too."""

    all: bool = False


class CloneIn(msgspec.Struct, forbid_unknown_fields=True):
    """Parameters that are left out keep the value they had."""

    parameters: dict[str, Value] = {}


class AttemptOut(msgspec.Struct, frozen=True, kw_only=True):
    """One launch of a step."""

    number: Annotated[int, Meta(description="1 for the first.")]
    state: Annotated[
        str,
        Meta(
            description="starting, running, stopping, succeeded, failed, cancelled, lost, or "
            "unknown while its cluster is silent",
            examples=["running"],
        ),
    ]
    cluster: Annotated[str, Meta(examples=["local"])]
    node: str
    assigned_at: datetime
    started_at: datetime | None
    ended_at: datetime | None
    cause: Annotated[
        str | None,
        Meta(description="exit, signal, oom, timeout, cancelled, lost, start or output"),
    ]
    exit_code: int | None
    signal: int | None
    message: str
    seen_at: Annotated[datetime | None, Meta(description="When its cluster was last heard of.")]


class StepOut(msgspec.Struct, frozen=True, kw_only=True):
    """A step with its newest attempt."""

    index: Annotated[int, Meta(description="In the run, from 0.")]
    name: Annotated[str, Meta(examples=["train-3"])]
    state: Annotated[
        str,
        Meta(
            description="waiting, starting, running, stopping, succeeded, failed, cancelled, "
            "skipped, lost or unknown",
            examples=["running"],
        ),
    ]
    matrix: dict[str, str]
    waits: Annotated[int, Meta(description="Needed steps that are not over.")]
    attempts: int
    note: Annotated[str, Meta(description="Why it was skipped or failed.")]
    requests: Annotated[dict[str, str], Meta(examples=[{"cpu": "2", "memory": "4Gi"}])]
    nodes: int
    ready_at: datetime | None
    started_at: datetime | None
    ended_at: datetime | None
    attempt: AttemptOut | None


class StepDetail(StepOut, frozen=True, kw_only=True):
    """A step with every attempt, the first one first."""

    history: list[AttemptOut]


class ReasonOut(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Why a step does not start on one cluster, or at all when `cluster` is empty."""

    code: Annotated[str, Meta(examples=["capacity"], description="See docs/reference/reasons.md.")]
    message: Annotated[str, Meta(examples=["asks 8 nvidia.com/gpu; 4 of 64 is free"])] = ""
    change: Annotated[
        str,
        Meta(
            examples=["4 more nvidia.com/gpu free would start it"],
            description="The nearest change that would start it; may be empty.",
        ),
    ] = ""
    never: Annotated[bool, Meta(description="Waiting alone cannot help.")] = False
    cluster: str = ""
    group: Annotated[str, Meta(description="The resource group whose rule it is.")] = ""
    resource: str = ""
    asked: str = ""
    free: str = ""
    total: str = ""
    seconds: float = 0.0
    others: Annotated[list[str], Meta(description="Steps that are waited for.")] = []
    foreign: Annotated[
        str, Meta(description="Held there by work that the platform does not run.")
    ] = ""
    numbers: Annotated[
        dict[str, int],
        Meta(description="What the cluster counted, such as nodes short of a resource."),
    ] = {}
    since: Annotated[datetime | None, Meta(description="When the cluster first said so.")] = None


class EndedOut(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """How the newest attempt of a step failed, and what lies behind that as far as known."""

    attempt: int
    message: Annotated[str, Meta(examples=["exited with code 1"])]
    code: Annotated[
        str, Meta(examples=["gpu_memory"], description="Empty: nothing tells what lies behind it.")
    ] = ""
    behind: Annotated[str, Meta(examples=["the memory of its GPU was not enough"])] = ""
    change: Annotated[str, Meta(description="What helps; may be empty.")] = ""


class WhyOut(msgspec.Struct, frozen=True, kw_only=True):
    """Why one step waits; without reasons it does not wait. How it failed, when it was asked for
    by itself."""

    index: int
    step: str
    state: str
    since: Annotated[datetime | None, Meta(description="When it became ready to run.")]
    requests: dict[str, str]
    nodes: int
    reasons: list[ReasonOut]
    nearest: Annotated[
        str,
        Meta(description="The nearest change that would start it; may be empty."),
    ] = ""
    ended: EndedOut | None = None


class EventOut(msgspec.Struct, frozen=True, kw_only=True):
    """One line of the audit about a run."""

    seq: int
    at: datetime
    actor: str
    action: Annotated[str, Meta(examples=["run.submitted"])]
    step: Annotated[int | None, Meta(description="Its index.")]
    attempt: int | None
    detail: dict[str, Any]
    object: str
    result: str
    origin: str


class ArtifactOut(msgspec.Struct, frozen=True, kw_only=True):
    """Something that an attempt left in object storage."""

    index: int
    step: str
    attempt: int
    name: str
    folder: bool
    size: Annotated[int, Meta(description="Bytes, of all files.")]
    files: int
    sha256: str
    created_at: datetime
    key: Annotated[str, Meta(description="In object storage; a folder's ends in `/`.")]
    url: Annotated[str, Meta(description="Of its bytes, below the server's address.")]


class ArtifactFile(msgspec.Struct, frozen=True, kw_only=True):
    """One file of an artifact, and a short-lived address that needs no credential."""

    path: Annotated[
        str,
        Meta(
            description="Inside the folder, empty when it is the artifact. What no key can hold "
            "is percent-encoded."
        ),
    ]
    size: int
    url: str


class LogItemOut(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A line, or a place where output is missing (`gap` says why)."""

    offset: int
    text: str = ""
    at: datetime | None = None
    truncated: Annotated[bool, Meta(description="The line goes on in the next item.")] = False
    gap: str = ""
    lost: Annotated[int, Meta(description="Bytes; 0 when nobody knows.")] = 0


class LogPageOut(msgspec.Struct, frozen=True, kw_only=True):
    """Some lines of one replica's output."""

    attempt: int
    replica: int
    replicas: int
    items: list[LogItemOut]
    next_offset: Annotated[int, Meta(description="Give it as `offset` for what follows.")]
    ended: Annotated[bool, Meta(description="There was nothing after these when they were read.")]
    complete: Annotated[bool, Meta(description="Nothing will follow.")]


class StepChange(msgspec.Struct, frozen=True, kw_only=True):
    """What `watch` says of a step whenever it changes."""

    index: int
    name: str
    state: str
    attempt: int
    cluster: str
    note: str
    started_at: datetime | None
    ended_at: datetime | None
