"""Between an agent and the control plane, protocol 1.

`POST /api/v1/agent/hello` opens a session: it raises the cluster's epoch, and from then on every
request that carries an older one is refused with 409 `stale_epoch`, whoever sends it.
`POST /api/v1/agent/sync` is the long poll: the answer holds the orders whose revision is above
`since`, or all of them (`full`) when `since` is 0. An order that was not received is simply sent
again, since the agent asks from the last revision that it has.
`POST /api/v1/agent/report` carries facts up; it may be sent twice.
`POST /api/v1/agent/grants` gives short-lived addresses of objects.

Bodies are MessagePack (`application/msgpack`) or JSON. Unknown fields are ignored in both
directions, so that neighbours in version understand each other; the credential decides which
cluster is meant, never the body.
"""

from __future__ import annotations

import msgspec

PROTOCOL = 1


class Document(msgspec.Struct, kw_only=True, omit_defaults=True):
    """Base of every wire document."""


class Hello(Document):
    instance: str
    """Random, made at start: two agents with the same credential differ by it."""
    version: str
    kind: str
    """`kubernetes`, `slurm` or `local`."""
    protocol: int = PROTOCOL
    stops_within_s: float | None = None
    """Leased work ends within so many seconds of its lease's end, even when the agent is dead;
    None: nobody can promise that here."""


class Welcome(Document):
    cluster: str
    epoch: int
    heartbeat_s: float
    """Never be silent for longer."""
    server_unix_ms: int
    version: str = ""
    number: int = 0
    """Of the cluster: names the objects that its agent tries the store out with."""


class InputFile(Document):
    name: str
    path: str
    key: str


class OutputFile(Document):
    name: str
    path: str
    key: str


class Launch(Document):
    """What to run; absent from an order that says stop."""

    run_name: str
    step: str
    project: str
    image: str = ""
    command: list[str] = []
    args: list[str] = []
    script: str = ""
    env: dict[str, str] = {}
    requests: dict[str, int] = {}
    """Milli-units; memory and storage in bytes."""
    limits: dict[str, int] = {}
    nodes: int = 1
    timeout_s: float | None = None
    grace_s: float = 30.0
    leased: bool = False
    """It may go on only while the lease lasts."""
    inputs: list[InputFile] = []
    outputs: list[OutputFile] = []


class Order(Document):
    key: str
    """`core.model.attempt.AttemptKey` as text."""
    revision: int
    launch: Launch | None = None
    """None: the attempt must end (and must not be started if it never was)."""
    grace_s: float = 30.0
    log_prefix: str = ""
    """Log chunks of replica R go to `{log_prefix}{R}/{sequence:08d}`."""


class SyncRequest(Document):
    epoch: int
    since: int = 0
    wait_s: float = 0.0


class SyncResponse(Document):
    epoch: int
    revision: int
    full: bool = False
    orders: list[Order] = []
    lease_s: float = 0.0
    """How long leased work may go on, from when this request was sent; never shortens a lease."""


class EndFact(Document):
    cause: str
    exit_code: int | None = None
    signal: int | None = None
    message: str = ""


class StoredOutput(Document):
    name: str
    key: str
    size: int
    files: int = 1
    sha256: str = ""


class AttemptFact(Document):
    """One attempt has reached `state`. Facts of one attempt are sent in order."""

    key: str
    state: str
    """`starting`, `running`, or one of the ends."""
    node: str = ""
    at_unix_ms: int = 0
    end: EndFact | None = None
    outputs: list[StoredOutput] = []


class WaitFact(Document):
    """Why the cluster lets an attempt wait that it was given; the newest one counts."""

    key: str
    code: str = ""
    """`core.model.waiting.Pending`; empty: it does not wait any more."""
    message: str = ""
    numbers: dict[str, int] = {}
    hopeless: bool = False


class LogFact(Document):
    """A chunk object exists (again: a growing chunk is written under the same key)."""

    key: str
    replica: int
    sequence: int
    first_byte: int
    size: int
    """Raw bytes."""
    lines: int = 0
    lost: int = 0
    """Bytes lost inside or before this chunk."""
    first_unix_ms: int = 0
    last_unix_ms: int = 0
    sealed: bool = False
    complete: bool = False
    """Nothing of this replica follows."""


class NodeFact(Document):
    name: str
    ready: bool
    allocatable: dict[str, int] = {}
    labels: dict[str, str] = {}
    cpu_load: float | None = None
    memory_free: int | None = None


class CheckFact(Document):
    """One thing that has to be right beside the cluster."""

    name: str
    level: str
    """`pass`, `warn`, `fail` or `unknown`."""
    required: bool = False
    message: str = ""
    remedy: str = ""


class Report(Document):
    epoch: int
    attempts: list[AttemptFact] = []
    logs: list[LogFact] = []
    nodes: list[NodeFact] | None = None
    """The whole list of nodes when given; None says nothing about nodes."""
    checks: list[CheckFact] | None = None
    """All checks when given."""
    waits: list[WaitFact] = []
    """Those that have changed."""


class Refused(Document):
    """A fact that changed nothing and need not be sent again."""

    key: str
    reason: str


class ReportAck(Document):
    epoch: int
    refused: list[Refused] = []


class GrantRequest(Document):
    epoch: int
    method: str
    """`GET` or `PUT`."""
    keys: list[str] = []
    listing: str = ""
    """Instead of keys: a directory's object keys are wanted (an input that is a directory)."""


class Grant(Document):
    key: str
    url: str
    size: int | None = None


class GrantResponse(Document):
    grants: list[Grant]
    ttl_s: float
