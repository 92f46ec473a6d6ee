"""The contract that `kubernetes`, `slurm`, `local` and `fake` fulfil."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol, runtime_checkable

from verderer.core.model.attempt import AttemptKey, AttemptState, End
from verderer.core.model.cluster import CheckReport
from verderer.core.model.resources import Resources
from verderer.core.model.waiting import Waiting


@dataclass(frozen=True, slots=True, kw_only=True)
class Input:
    """Something to put into the working directory before the command starts."""

    name: str
    path: str
    """Where, relative to the working directory."""
    key: str
    """Object key; a key ending in `/` is a directory: everything below it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Output:
    """Something to store when the command has succeeded."""

    name: str
    path: str
    key: str
    """Object key, or the prefix when the path turns out to be a directory."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Order:
    """Everything a cluster needs to know to start one attempt."""

    key: AttemptKey
    run_name: str
    step: str
    project: str
    image: str = ""
    command: tuple[str, ...] = ()
    args: tuple[str, ...] = ()
    script: str = ""
    env: Mapping[str, str] = field(default_factory=dict)
    requests: Resources = field(default_factory=lambda: Resources.of({}))
    limits: Resources = field(default_factory=lambda: Resources.of({}))
    nodes: int = 1
    timeout_s: float | None = None
    grace_s: float = 30.0
    leased: bool = False
    """It may go on only while the agent's lease lasts; see `StopsUnheard`."""
    inputs: tuple[Input, ...] = ()
    outputs: tuple[Output, ...] = ()
    carry: str = field(default="", repr=False)
    """What the step's own carrier is told, for drivers that `CarriesApart`: JSON, a secret."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Stored:
    """An output that is safe in the object store."""

    name: str
    key: str
    size: int
    files: int = 1
    sha256: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Observed:
    """What the cluster says about one attempt of ours."""

    key: AttemptKey
    state: AttemptState
    node: str = ""
    end: End | None = None
    """Set when `state` is over."""
    started_ms: int | None = None
    """Unix milliseconds when the program started, by the cluster's clock."""
    ended_ms: int | None = None
    pending: Waiting | None = None
    """Why the cluster lets it wait; None when it does not."""
    outputs: tuple[Stored, ...] = ()
    """What the step's own carrier has stored, once it has succeeded."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeFacts:
    """One node as the cluster describes it, never a guess."""

    name: str
    ready: bool
    allocatable: Resources
    labels: Mapping[str, str] = field(default_factory=dict)
    cpu_load: float | None = None
    """Busy share of all cores, 0 to 1; None when it could not be measured."""
    memory_free: int | None = None
    """Bytes; None when it could not be measured."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LogPiece:
    """Consecutive output bytes of one replica, or a hole where bytes were lost."""

    offset: int
    unix_ms: int
    data: bytes = b""
    lost: int = 0
    """Bytes that nobody can give back any more; then `data` is empty and `reason` says why."""
    reason: str = ""


class Driver(Protocol):
    """Makes one cluster obey.

    Every method may be called again with the same arguments after a crash and must then change
    nothing. Methods raise `core.errors.Fault` when the cluster cannot be reached, and
    `core.errors.Refusal` when it will never accept the request.
    """

    kind: str

    async def observe(self) -> Sequence[Observed]:
        """Everything we own on this cluster, including what we did not start in this life."""
        ...

    async def changed(self, *, timeout_s: float) -> None:
        """Return when something may have changed since the last `observe`, or on time-out."""
        ...

    async def start(self, order: Order, *, workspace: str) -> None:
        """Make `order.key` exist. Returns once the cluster has accepted it, not once it runs.

        `workspace` is a directory made by `prepare`, or empty when the driver needs none.
        """
        ...

    async def stop(self, key: AttemptKey, *, grace_s: float) -> None:
        """Make `key` end: a polite signal, then force after `grace_s` seconds."""
        ...

    async def forget(self, key: AttemptKey) -> None:
        """Remove what is left of an attempt whose end, logs and outputs are safe elsewhere."""
        ...

    async def nodes(self) -> Sequence[NodeFacts]:
        """The nodes of this cluster with what they can give."""
        ...

    def logs(self, key: AttemptKey, *, replica: int, after: int) -> AsyncIterator[LogPiece]:
        """Output from byte offset `after` on, as it comes, ending when it is complete."""
        ...


@runtime_checkable
class HasWorkspace(Protocol):
    """Optional: the agent itself carries inputs and outputs through a local directory."""

    async def prepare(self, order: Order) -> str:
        """Make the empty working directory and return its path."""
        ...

    def workspace(self, key: AttemptKey) -> str | None:
        """Path of an existing working directory, or None."""
        ...


@runtime_checkable
class CarriesApart(Protocol):
    """Optional: files go straight between the step's place and the object store.

    `Order.carry` is then what the carrier beside the program is told, and `Observed.outputs` what
    it has stored.
    """

    carries_apart: bool


@runtime_checkable
class StopsUnheard(Protocol):
    """Optional: what was ordered as `leased` is stopped when nobody renews the lease any more.

    This must not need the agent: when that is dead the work has to end all the same, and a driver
    that cannot see to it does not have the ability.
    """

    stops_within_s: float
    """From the lease's end until nothing of such an attempt can be running, at worst."""

    def now(self) -> float:
        """Seconds of the clock that leases are measured by; it runs while the machine sleeps."""
        ...

    async def renew(self, until: float) -> None:
        """Let leased work go on until this moment of `now`; an earlier one changes nothing."""
        ...


@runtime_checkable
class CanCordon(Protocol):
    """Optional: clusters whose nodes can be taken out of service one by one.

    Each method may be called again and then changes nothing. What somebody else has taken out of
    service is never put back.
    """

    async def cordon(self, node: str, *, reason: str) -> None:
        """Let nothing new begin on the node; what runs there goes on."""
        ...

    async def drain(self, node: str, *, grace_s: float) -> bool:
        """Ask work to leave; return whether the node is empty. Call again until True."""
        ...

    async def uncordon(self, node: str) -> None:
        """Undo our own `cordon`. Raises Conflict when somebody else took the node out."""
        ...


@runtime_checkable
class Examines(Protocol):
    """Optional ability of a driver: to look at what its cluster needs to do any work."""

    async def examine(self) -> Sequence[CheckReport]:
        """Look again and say what is right and what is not; changes nothing that lasts.

        Never raises for what it finds: a cluster out of reach is a finding.
        """
        ...
